import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PayoutCommand } from '../commands/command.ts'
import { beneficiaryIdHash, eventId, fingerprint, orderNumber, payoutIdFor } from '../identifiers.ts'
import { maskAccount, maskVpa, scrub, words } from '../mask.ts'
import { formatRupees, paise } from '../money.ts'
import { isEnd, mayMove, STATES } from './states.ts'

const key = createSecretKey(Buffer.alloc(32, 7))
const command = (fields: Partial<PayoutCommand> = {}) =>
  ({
    merchantId: 'acme',
    payoutId: 'p1',
    amount: paise(10_000),
    currency: 'INR',
    accountName: 'Asha Rao',
    accountNo: '50100123456789',
    bankCode: 'BANK',
    ifsc: 'HDFC0001234',
    vpa: null,
    ...fields,
  }) as PayoutCommand

test('an order number is 30 of A–Z and 0–9, and always the same for the same attempt series', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.integer({ min: 1 }), (merchantId, payoutId, series) => {
      const orderNo = orderNumber(merchantId, payoutId, series)
      assert.match(orderNo, /^[A-Z0-9]{30}$/)
      assert.equal(orderNumber(merchantId, payoutId, series), orderNo)
    }),
  )
})

test('identifiers of different things differ, however their parts are cut', () => {
  assert.notEqual(orderNumber('ab', 'c', 1), orderNumber('a', 'bc', 1))
  assert.notEqual(orderNumber('a', 'b', 1), orderNumber('a', 'b', 2))
  assert.notEqual(payoutIdFor('m', 'b1', 'r'), payoutIdFor('m', 'b', '1r'))
  assert.notEqual(eventId('m', 'p', 1), eventId('m', 'p', 2))
})

test('identifiers never change: a change would pay people again', () => {
  assert.equal(orderNumber('acme', 'salary-1', 1), 'P2TKMIF7DDRJE6NAUG6N3GYQUEIBXY')
  assert.equal(payoutIdFor('acme', 'november', 'E-1001'), 'FZE2OPQT4L2KWGTV2W2IL66ET3M')
  assert.equal(eventId('acme', 'salary-1', 4), 'f48efd43-3d04-5cc5-8705-95b91830322f')
  assert.equal(
    fingerprint(command(), key).toString('hex'),
    'cfd9d59bcb3102003dc5867713a21c3d1cfab6b373cbf5fbd8907f25478e5bc2',
  )
})

test('a fingerprint depends on payee and amount, and on nothing else', () => {
  const same = fingerprint(command(), key)
  const others: Partial<PayoutCommand>[] = [
    { amount: paise(10_100) },
    { accountNo: '50100123456780' },
    { ifsc: 'HDFC0001235' },
    { ifsc: null, vpa: 'HDFC0001234' },
    { accountName: 'Asha Rai' },
  ]
  for (const other of others) assert.notDeepEqual(fingerprint(command(other), key), same)
  assert.deepEqual(fingerprint(command({ remark: 'other', batchId: 'other', priority: 5 }), key), same)
})

test('a name or a beneficiary’s own id that looks the same is the same', () => {
  const hashes = ['Jos\u00e9 D', 'Jose\u0301\u00a0D\u200b', 'Jos\u00e9 E'].map((text) => {
    const asked = command({ accountName: text, beneficiaryId: text })
    return [fingerprint(asked, key), beneficiaryIdHash(asked, key)]
  })
  assert.deepEqual(hashes[1], hashes[0])
  for (const i of [0, 1]) assert.notDeepEqual(hashes[2]?.[i], hashes[0]?.[i])
})

test('rupees have Indian grouping', () => {
  const written = [0n, 5n, 100n, 99_999n, 1_00_000n, 12_34_567_89n, 10n ** 14n, -150n].map((amount) =>
    formatRupees(paise(amount)),
  )
  assert.deepEqual(written, [
    '₹0.00',
    '₹0.05',
    '₹1.00',
    '₹999.99',
    '₹1,000.00',
    '₹12,34,567.89',
    '₹10,00,00,00,00,000.00',
    '-₹1.50',
  ])
})

test('masked values show at most four digits', () => {
  assert.equal(maskAccount('50100123456789'), '••••6789')
  assert.equal(maskAccount('1234567'), '••••')
  assert.equal(maskVpa('asha.rao@okaxis'), 'as••••@okaxis')
  assert.equal(maskVpa('ab@okaxis'), '••••@okaxis')
})

test('no account number survives in free text, wherever it stands', () => {
  const account = fc.stringMatching(/^[0-9]{5,18}$/)
  fc.assert(
    fc.property(account, fc.string(), fc.string(), (accountNo, before, after) => {
      assert.ok(!scrub(`${before} ${accountNo} ${after}`).includes(` ${accountNo} `))
    }),
  )
  assert.equal(scrub('A/c 50100123456789 (asha.rao@okaxis) closed'), 'A/c ••••6789 (as••••@okaxis) closed')
  assert.equal(scrub('to Asha Rao', ['Asha Rao']), 'to ••••')
})

test('no account number survives in groups, or in digits of another script', () => {
  const signs = fc.array(fc.constantFrom(' ', '-', '.', '/', '\u00a0', '\u200b', '–', ', '), { minLength: 8 })
  const zero = fc.constantFrom(0x30, 0x966, 0xff10, 0x660, 0x1d7ce)
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9]{9,18}$/), signs, zero, (accountNo, between, script) => {
      const digits = [...accountNo].map((digit) => String.fromCodePoint(script + Number(digit)))
      const written = digits.map((digit, i) => digit + (between[i % between.length] ?? '')).join('')
      const left = scrub(`a/c ${written}is closed`).match(/\p{N}/gu)?.length ?? 0
      assert.ok(left <= 4, `${left} digits of ${written} are left`)
    }),
  )
  assert.equal(scrub('a/c 5010 0123 4567 89 is frozen'), 'a/c ••••6789 is frozen')
  assert.equal(scrub('a/c ५०१००१२३४५६७८९'), 'a/c ••••६७८९')
  assert.equal(scrub('paid on 2026-11-22 09:30, says Ravi'), 'paid on 2026-11-22 09:30, says Ravi')
})

test('a person’s name or staff number stays whole, and a number as long as an account number does not', () => {
  const kept = (by: string) => words({ by, reason: 'not to 5010-0123-4567-89' })
  assert.equal(kept('asha.rao@example.com'), 'asha.rao@example.com: not to ••••6789')
  assert.equal(kept('E100234'), 'E100234: not to ••••6789')
  assert.equal(kept('clerk of 50100123456789'), 'clerk of ••••6789: not to ••••6789')
})

test('nothing leaves an end, and everything else can reach one', () => {
  for (const from of STATES) {
    const exits = STATES.filter((to) => mayMove(from, to, 1))
    assert.equal(exits.length === 0, isEnd(from), from)
  }
})

test('a payout that may be at the gateway is never cancelled, and never rejected', () => {
  for (const from of STATES) {
    assert.equal(mayMove(from, 'cancelled', 1), false)
    assert.equal(mayMove(from, 'rejected', 1), false)
  }
})

test('payoutd masks and keeps only the beginning of an endless text', () => {
  for (const part of ['.', 'a', '1', 'a.', '1 ', '🙂', 'a1', 'ab@c.d ']) {
    const text = scrub(part.repeat((4 * 1024 * 1024) / part.length))
    assert.ok(text.length <= 3 * 16_384, JSON.stringify(part))
  }
})
