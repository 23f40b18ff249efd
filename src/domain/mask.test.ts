import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hideKnown } from './hide-known.ts'
import { scrub } from './mask.ts'

const KNOWN = ['M/S "Sharma" & Co', 'Asha Menon', 'asha.menon@okaxis', "O'Neil Rao", 'आशा मेनन']

test('known values do not appear in any of their usual forms', () => {
  for (const [text, shown] of [
    ['to Asha Menon now', 'to •••• now'],
    ['to ASHA MENON now', 'to •••• now'],
    ['accountName=Asha%20Menon&x', 'accountName=••••&x'],
    ['accountName=Asha+Menon&x', 'accountName=••••&x'],
    ['extra=%7B%22value%22%3A%22asha.menon%40okaxis%22%7D', 'extra=%7B%22value%22%3A%22••••%22%7D'],
    ['extra=asha.menon%2540okaxis', 'extra=••••'],
    ['<b>O&#39;Neil Rao</b> or O&apos;Neil Rao, o&#x27;neil rao', '<b>••••</b> or ••••, ••••'],
    [String.raw`{"name":"\u0906\u0936\u093e \u092e\u0947\u0928\u0928"}`, '{"name":"••••"}'],
    ['name=%E0%A4%86%E0%A4%B6%E0%A4%BE%20%E0%A4%AE%E0%A5%87%E0%A4%A8%E0%A4%A8', 'name=••••'],
    [
      String.raw`{"body":"{\"name\":\"o'neil rao\",\"other\":\"\\u0906\\u0936\\u093e \\u092e\\u0947\\u0928\\u0928\""`,
      String.raw`{"body":"{\"name\":\"••••\",\"other\":\"••••\""`,
    ],
    [String.raw`{"name":"M\/S \"Sharma\" & Co"} m/s "sharma" & co`, '{"name":"••••"} ••••'],
    ['Asha&nbsp;Menon, Asha&#160;Menon, asha\u00a0menon, asha.menon&commat;okaxis', '••••, ••••, ••••, ••••'],
    ['nobody of them, 100 %, a+b & c', 'nobody of them, 100 %, a+b & c'],
  ] as const)
    assert.equal(hideKnown(text, KNOWN, 4), shown)
})

test('no text of any kind makes it fail, and what it hides is gone', () => {
  const value = fc.string({ unit: 'binary', minLength: 4, maxLength: 20 })
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      value,
      fc.string({ unit: 'binary' }),
      (before, value, after) => {
        const hidden = hideKnown(`${before}${value}${after}`, [value], 4)
        assert.ok(!hidden.includes(value) || '••••'.includes(value))
      },
    ),
  )
})

test('no address that payoutd accepts as VPA or e-mail stays whole in a text', () => {
  // What separates an address from the text around it cannot be told from a part of it, nor a backslash from that of an escape.
  const email = fc.stringMatching(/^[^@\s]{0,9}[^\s@"<>(){}[\],;:=&\\]@[^@\s][^@\s.]{0,10}\.[^@\s]{1,10}$/)
  const vpa = fc.stringMatching(/^[A-Za-z0-9._-]{2,40}@[A-Za-z][A-Za-z0-9]{1,20}$/)
  fc.assert(
    fc.property(fc.oneof(email, vpa), (address) => {
      for (const written of [
        address,
        address.replace('@', '%40'),
        address.replace('@', '&#64;'),
        address.replace('@', '&#064;'),
        address.replace('@', '\\x40'),
      ])
        assert.ok(!scrub(`no account for ${written}, sorry`).includes(written), written)
    }),
  )
})

test('of several addresses, whatever joins them, none stays whole', () => {
  const vpa = fc.stringMatching(/^[a-z0-9.-]{3,20}@[a-z]{2,10}$/)
  fc.assert(
    fc.property(vpa, vpa, fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }), (one, other, joint) => {
      const shown = scrub(`to ${one}${joint}${other}`)
      assert.ok(!shown.includes(one) && !shown.includes(other), shown)
    }),
  )
  assert.equal(
    scrub('UPI/P2A/412345678901/asha.rao@okaxis/ravi.kumar@ybl/salary'),
    'UPI/P2A/••••8901/as••••@okaxis/ra••••@ybl/salary',
  )
})

test('addresses are masked with a tag, in any script, and behind what surrounds them in a form, in JSON or in brackets', () => {
  for (const [text, shown] of [
    ['asha.rao+pay@okaxis.co', 'as••••@okaxis.co'],
    ["o'neil@mail.com", "o'••••@mail.com"],
    ['आशा@mail.in', 'आ••••@mail.in'],
    ['{"mail":"asha@mail.in","a":1}', '{"mail":"as••••@mail.in","a":1}'],
    ['mail=asha@mail.in&a=1', 'mail=as••••@mail.in&a=1'],
    ['<asha@mail.in>', '<as••••@mail.in>'],
    ['2 pieces @ 5.00, see @desk', '2 pieces @ 5.00, see @desk'],
  ] as const)
    assert.equal(scrub(text), shown)
})
