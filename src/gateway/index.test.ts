import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadDialect } from './index.ts'

const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8')

/** Every setting by its full name, with its value. */
function settingsOf(value: unknown, name = ''): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value]]
  return Object.entries(value).flatMap(([key, each]) =>
    settingsOf(each, name === '' ? key : `${name}.${key}`),
  )
}

/** The names in the first column of the dialect's table; `.x` after `a.b` means `a.x`. */
function documented(): Map<string, string> {
  const settings = new Map<string, string>()
  for (const [, names, value] of readme.matchAll(/^\| (`[^|]+`) \| ([^|]+) \|.*\|.*\|$/gm)) {
    let last = ''
    for (const [, name] of (names as string).matchAll(/`([^`]+)`/g)) {
      last = name?.startsWith('.') ? last.replace(/\.[^.]+$/, name) : (name as string)
      settings.set(last, value as string)
    }
  }
  return settings
}

test('the README names every setting of a dialect, and no other', () => {
  const names = settingsOf(loadDialect('default')).map(([name]) => name)
  assert.ok(names.length > 30)
  assert.deepEqual([...documented().keys()].sort(), names.sort())
})

test('the defaults in the README are those of dialects/default.json', () => {
  const documentation = documented()
  const defaults = new Map(settingsOf(loadDialect('default')))
  for (const [name, value] of defaults) {
    const words = documentation.get(name) ?? ''
    if (Array.isArray(value)) assert.match(words, value.length === 0 ? /^none$/ : /^30 s to half an hour$/)
    else if (typeof value === 'number') assert.ok(words.split(', ').includes(String(value)), name)
    else assert.equal(words, `\`${value}\``, name)
  }
  assert.deepEqual([defaults.get('queryAfterMs')].flat().slice(0, 1), [30_000])
  assert.deepEqual([defaults.get('queryAfterMs')].flat().slice(-1), [1_800_000])
})
