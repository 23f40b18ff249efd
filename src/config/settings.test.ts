import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { FILES } from '../../scripts/reference.ts'
import { ConfigError, readConfig, VARIABLES } from './config.ts'
import { MERCHANT_SETTINGS, SETTINGS } from './settings.ts'

const settings = [...SETTINGS.flatMap((group) => group.settings), ...MERCHANT_SETTINGS]
const KEY = Buffer.alloc(32).toString('base64')
const SECRETS = { ENCRYPTION_KEYS: `1:${KEY}`, FINGERPRINT_KEY: KEY, GATEWAY_KEY: 'made up' }
const needed: NodeJS.ProcessEnv = {
  ...Object.fromEntries(settings.filter((each) => each.required).map((each) => [each.name, each.example])),
  ...SECRETS,
}

const missing = (env: NodeJS.ProcessEnv): string[] => {
  try {
    readConfig(env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return VARIABLES.filter((name) => error.message.includes(`${name} is not set`))
  }
}

test('the table of settings names every variable that is read, and no other', () => {
  assert.deepEqual(settings.map(({ name }) => name).sort(), [...VARIABLES].sort())
})

test('no variable is read under a name that is not listed', () => {
  const files = readdirSync(import.meta.dirname).filter((file) => !file.endsWith('.test.ts'))
  const read = files.flatMap((file) => [
    ...readFileSync(new URL(file, import.meta.url), 'utf8').matchAll(/\b(?:env|given)\.([A-Z][A-Z_]+)/g),
  ])
  assert.deepEqual(
    read.map(([, name]) => name).filter((name) => !VARIABLES.includes(name as string)),
    [],
  )
})

test('payoutd does not start without the variables that the table calls required', () => {
  assert.deepEqual(missing(needed), [])
  assert.deepEqual(
    missing({}).sort(),
    settings
      .filter((each) => each.required)
      .map(({ name }) => name)
      .sort(),
  )
})

test('a default in the table is the value in force without the variable', () => {
  const defaults = settings.filter((each) => each.default !== null)
  const spelledOut = Object.fromEntries(defaults.map((each) => [each.name, each.default as string]))
  assert.deepEqual(readConfig({ ...needed, ...spelledOut }), readConfig(needed))
})

for (const { file, write } of FILES) {
  test(`${file.split('/').at(-1)} is what npm run reference writes`, () => {
    assert.equal(readFileSync(file, 'utf8'), write(), 'run npm run reference')
  })
}
