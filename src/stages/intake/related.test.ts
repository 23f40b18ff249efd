import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { related } from './related.ts'

const groups = (items: readonly string[]) =>
  related(items, (item) => [...item]).map((group) => group.join(' '))

test('items that have a subject in common are one group, however far apart, and also through a third one', () => {
  assert.deepEqual(groups(['a', 'b', 'c']), ['a', 'b', 'c'])
  assert.deepEqual(groups(['ab', 'cd', 'e', 'bc']), ['ab cd bc', 'e'])
  assert.deepEqual(groups(['a', 'a', 'a']), ['a a a'])
})

test('no two groups have a subject in common, and every item is in one', () => {
  const item = fc.uniqueArray(fc.integer({ min: 0, max: 30 }), { maxLength: 3 })
  fc.assert(
    fc.property(fc.array(item), (items) => {
      const found = related(items, (subjects) => subjects.map(String))
      const seen = found.map((group) => new Set(group.flat()))
      const subjects = seen.flatMap((each) => [...each])
      assert.equal(new Set(subjects).size, subjects.length)
      assert.equal(found.flat().length, items.length)
    }),
  )
})
