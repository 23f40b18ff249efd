import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readJsonFields } from './json-fields.ts'

const read = (text: string) => {
  const fields = readJsonFields(text)
  return fields && Object.fromEntries(fields)
}

test('numbers stay as written, because the signature covers that text', () => {
  assert.deepEqual(read('{"a":1e2,"b":10.0,"c":9007199254740993,"d":-0,"e":0.10}'), {
    ...{ a: '1e2', b: '10.0', c: '9007199254740993', d: '-0', e: '0.10' },
  })
})

test('nested values stay as written, with their spaces', () => {
  assert.deepEqual(read('{"p":{ "url" : "a}\\"]" , "n":[1.0,{}]},"l": [ ] ,"t":true}'), {
    ...{ p: '{ "url" : "a}\\"]" , "n":[1.0,{}]}', l: '[ ]', t: 'true' },
  })
})

test('null is null and the text "null" is a text', () => {
  assert.deepEqual(read('{"a":null,"b":"null","c":""}'), { a: null, b: 'null', c: '' })
})

test('a repeated name makes the whole answer unreadable', () => {
  assert.equal(read('{"status":3,"status":2}'), null)
  assert.equal(read('{"status":3,"st\\u0061tus":2}'), null)
})

test('__proto__ is an ordinary name', () => {
  const fields = readJsonFields('{"__proto__":{"status":2},"status":3}')
  assert.equal(fields?.get('__proto__'), '{"status":2}')
  assert.equal(fields?.get('status'), '3')
  assert.equal(({} as { status?: unknown }).status, undefined)
})

test('anything but one JSON object is unreadable', () => {
  const texts = ['', ' ', 'null', '[]', '"{}"', '12', '{', '{"a":1', '{"a":1}x', '{a:1}', "{'a':1}", '<html>']
  for (const text of texts) assert.equal(readJsonFields(text), null, text)
  assert.equal(readJsonFields(`${'['.repeat(60_000)}`), null)
})

test('more fields than any answer has are not read', () => {
  const withFields = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, 1])))
  assert.equal(readJsonFields(withFields(64))?.size, 64)
  assert.equal(readJsonFields(withFields(65)), null)
})

const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), maxLength: 3 })
const value = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.json(),
)

test('for every object, however it is spaced, its texts are those of JSON.parse', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), value), space, (object, gap) => {
      const members = Object.entries(object).map(
        ([name, each]) => `${gap}${JSON.stringify(name)}${gap}:${gap}${JSON.stringify(each)}${gap}`,
      )
      const text = `${gap}{${members.join(',') || gap}}${gap}`
      const expected = Object.entries(object).map(([name, each]): [string, string | null] => {
        const parsed: unknown = JSON.parse(JSON.stringify(each))
        return [name, parsed === null ? null : typeof parsed === 'string' ? parsed : JSON.stringify(each)]
      })
      assert.deepEqual(readJsonFields(text), new Map(expected))
    }),
  )
})
