import assert from 'node:assert/strict'
import { test } from 'node:test'
import { slowPatterns } from '../scripts/patterns.ts'

test('a pattern that can take more than linear time is reported, with its line', () => {
  const slow = [
    '/^(a+)+$/',
    '/^(\\w+\\s?)*$/',
    '/^\\w+\\d+$/',
    '/\\s+$/',
    '/<[^>]+>/g',
    'new RegExp(given)',
    'RegExp(given)',
  ]
  for (const pattern of slow) {
    const found = slowPatterns(`const given = ''\nexport const is = ${pattern}\n`)
    assert.deepEqual(
      found.map(({ line, pattern }) => [line, pattern]),
      [[2, pattern]],
    )
  }
})

test('a linear pattern is not reported', () => {
  for (const pattern of ['/^[0-9a-f]{32}$/', '/^[^@\\s]+@[^@\\s]+$/', '/^(?:a,)*b$/', '/[,;]/g'])
    assert.deepEqual(slowPatterns(`export const is = ${pattern}`), [])
})
