import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  cutText,
  everyText,
  hasOnlyGoodText,
  visible,
  visibleJson,
  wellFormed,
  wellFormedJson,
} from './text.ts'

/** Any UTF-16 text: half characters, NUL, and the escapes of both as ordinary text. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc.constantFrom('\0', '\ud800', '\udc00', '\\u0000', '\\ud800', '\\\\u0000\0', 'a\ud800\\ud800'),
)
const refused = (text: string) => !text.isWellFormed() || text.includes('\0')

test('text becomes well-formed, and well-formed text stays as it is', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      assert.equal(refused(wellFormed(text)), false)
      if (!refused(text)) assert.equal(wellFormed(text), text)
    }),
  )
})

test('a text is cut at a whole character', () => {
  assert.equal(cutText('a🙂b', 2), 'a')
  assert.equal(cutText('a🙂b', 3), 'a🙂')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(20), (text, most) => {
      const head = cutText(text, most)
      assert.ok(head.length <= most && text.startsWith(head) && head.isWellFormed())
      assert.ok(head.length >= Math.min(text.length, most) - 1)
    }),
  )
})

test('JSON becomes well-formed in names and values, and an escape written as ordinary text stays', () => {
  fc.assert(
    fc.property(fc.dictionary(anyText, anyText), (value) => {
      const json = wellFormedJson(JSON.stringify(value))
      const wanted = Object.entries(value).map(([name, text]) => [wellFormed(name), wellFormed(text)])
      assert.deepEqual(JSON.parse(json), Object.fromEntries(wanted))
    }),
  )
  assert.equal(wellFormedJson(JSON.stringify({ a: '\\u0000' })), JSON.stringify({ a: '\\u0000' }))
})

test('shown text contains nothing that controls a terminal or the writing direction', () => {
  assert.equal(visible('a\u001b[2Jb\u009b1mc\u202ed\r\n'), 'a\\u001b[2Jb\\u009b1mc\\u202ed\\u000d\\u000a')
  assert.equal(visible('पेमेंट 🙂 é'), 'पेमेंट 🙂 é')
  const line = visibleJson(JSON.stringify({ msg: 'a\u009b1m\u202e\ud800\u001b' }))
  assert.equal(JSON.parse(line).msg, 'a\u009b1m\u202e\ufffd\u001b')
  assert.match(line, /^[ -~\ufffd]*$/)
})

test('a value has only good text exactly if making all of it well-formed changes nothing', () => {
  const value = fc.object({
    key: fc.string({ unit: 'binary' }),
    values: [fc.string({ unit: 'binary' }), fc.integer()],
  })
  fc.assert(
    fc.property(value, (given) => {
      const isSame = JSON.stringify(everyText(given, wellFormed)) === JSON.stringify(given)
      assert.equal(hasOnlyGoodText(given), isSame)
    }),
    { numRuns: 2_000 },
  )
})
