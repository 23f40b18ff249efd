import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { ConfigError, readConfig } from './config.ts'

const KEY = randomBytes(32).toString('base64')

const environment = (extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  DATABASE_URL: 'postgres://payoutd:database-secret@localhost:5432/payoutd',
  KAFKA_BROKERS: 'a:9092, b:9092',
  SCHEMA_REGISTRY_URL: 'http://localhost:8081/apis/ccompat/v7',
  ENCRYPTION_KEYS: `1:${KEY},2:${KEY}`,
  FINGERPRINT_KEY: KEY,
  GATEWAY_BASE_URL: 'https://gateway.example/',
  GATEWAY_MCH_ID: '1000100',
  GATEWAY_KEY: 'gateway-secret',
  ...extra,
})

const complaint = (env: NodeJS.ProcessEnv): string => {
  try {
    readConfig(env)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.message
  }
  return assert.fail('nothing was refused')
}

test('one merchant by variables, with defaults for the rest', () => {
  const config = readConfig(environment())
  assert.deepEqual(config.kafka.brokers, ['a:9092', 'b:9092'])
  assert.equal(config.sealing.current, 2)
  const merchant = config.merchants.get('default')
  assert.deepEqual(
    [merchant?.baseUrl, merchant?.mchId, merchant?.key],
    ['https://gateway.example', '1000100', 'gateway-secret'],
  )
  assert.equal(merchant?.dialect.duplicateApply, 'unknown')
})

test('amounts in the settings are whole rupees, and paise inside', () => {
  const { merchants } = readConfig(environment({ MIN_AMOUNT_RUPEES: '100', MAX_AMOUNT_RUPEES: '500000' }))
  assert.deepEqual(merchants.get('default')?.limits, { minAmount: 10_000n, maxAmount: 50_000_000n })
  assert.match(complaint(environment({ MIN_AMOUNT_RUPEES: '1e3' })), /minAmountRupees/)
})

test('everything that is wrong or missing is told at once, by its name', () => {
  const message = complaint({
    KAFKA_BROKERS: 'a:9092',
    PUBLIC_PORT: '99999',
    LOG_LEVEL: 'loud',
    ENCRYPTION_KEYS: '1:short',
  })
  for (const name of [
    'DATABASE_URL',
    'SCHEMA_REGISTRY_URL',
    'FINGERPRINT_KEY',
    'ENCRYPTION_KEYS',
    'PUBLIC_PORT',
    'LOG_LEVEL',
    'GATEWAY_BASE_URL',
    'GATEWAY_KEY',
  ]) {
    assert.match(message, new RegExp(name))
  }
  assert.match(message, /PUBLIC_PORT is "99999"/)
  assert.doesNotMatch(message, /KAFKA_BROKERS/)
})

test('a secret that is wrong is never shown', () => {
  const message = complaint(
    environment({
      ENCRYPTION_KEYS: '1:my-secret-key',
      FINGERPRINT_KEY: 'my-secret-key',
      DATABASE_URL: 'mysql://u:my-secret-key@h',
    }),
  )
  assert.doesNotMatch(message, /my-secret-key/)
})

test('an empty variable counts as not set', () => {
  assert.match(complaint(environment({ GATEWAY_KEY: '' })), /GATEWAY_KEY/)
})

const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-config-'))
after(() => rmSync(folder, { recursive: true }))

/** The path of a new file that holds `text`. */
function fileOf(text: string): string {
  const file = path.join(folder, randomUUID())
  writeFileSync(file, text)
  return file
}

const SASL = {
  KAFKA_SASL_MECHANISM: 'plain',
  KAFKA_PASSWORD: 'kafka-secret',
  SCHEMA_REGISTRY_USERNAME: 'payoutd',
  SCHEMA_REGISTRY_PASSWORD: 'registry-secret',
}
const SECRETS = [
  'DATABASE_URL',
  'KAFKA_PASSWORD',
  'SCHEMA_REGISTRY_PASSWORD',
  'ENCRYPTION_KEYS',
  'FINGERPRINT_KEY',
  'GATEWAY_KEY',
]

test('each secret may stand in a file instead, with a line’s end after it', () => {
  const env = environment(SASL)
  const known = readConfig(env)
  for (const name of SECRETS) {
    const { [name]: secret, ...rest } = env
    assert.ok(secret, name)
    assert.deepEqual(readConfig({ ...rest, [`${name}_FILE`]: fileOf(`${secret}\n`) }), known, name)
  }
})

test('a secret by variable and by file is refused, whichever it is', () => {
  for (const name of SECRETS) {
    const message = complaint(environment({ ...SASL, [`${name}_FILE`]: fileOf('in-the-file') }))
    assert.match(message, new RegExp(`${name} and ${name}_FILE are both set`))
    assert.doesNotMatch(message, /in-the-file|-secret/)
  }
})

test('a secret’s file that is missing, empty or holds something wrong is told by its variable, never shown', () => {
  const without = { KAFKA_PASSWORD: '', DATABASE_URL: '', FINGERPRINT_KEY: '' }
  const message = complaint(
    environment({
      ...without,
      KAFKA_PASSWORD_FILE: '/my-secret-key-by-mistake',
      DATABASE_URL_FILE: fileOf('\n'),
      FINGERPRINT_KEY_FILE: fileOf('my-secret-key'),
    }),
  )
  assert.match(message, /KAFKA_PASSWORD_FILE: the file cannot be read \(ENOENT\)/)
  assert.match(message, /DATABASE_URL_FILE: the file is empty/)
  assert.match(message, /FINGERPRINT_KEY is set \(not shown\): must be 32 random bytes/)
  assert.doesNotMatch(message, /my-secret-key/)
})

test('many merchants by a file, each key by reference', () => {
  const entry = { baseUrl: 'https://gateway.example', mchId: '1', dialect: 'sandbox' }
  const file = fileOf(
    JSON.stringify({
      merchants: [
        { ...entry, id: 'one', key: 'env:ONE_KEY', dialectOverrides: { leaseMs: 20_000 } },
        { ...entry, id: 'two', key: `file:${fileOf('from-a-file\n')}`, ratePerSecond: 5 },
      ],
    }),
  )
  const { merchants } = readConfig(environment({ MERCHANTS_FILE: file, ONE_KEY: 'from-a-variable' }))
  assert.deepEqual([...merchants.keys()], ['one', 'two'])
  assert.deepEqual([merchants.get('one')?.key, merchants.get('two')?.key], ['from-a-variable', 'from-a-file'])
  assert.equal(merchants.get('one')?.dialect.leaseMs, 20_000)
  assert.equal(merchants.get('two')?.ratePerSecond, 5)
})

test('a merchants file is refused with every fault: a key in the clear, an id twice, a wrong dialect', () => {
  const entry = { id: 'one', baseUrl: 'https://gateway.example', mchId: '1', key: 'env:GATEWAY_KEY' }
  const merchants = [
    entry,
    entry,
    { ...entry, id: 'two', key: 'in-the-clear' },
    { ...entry, id: 'three', dialectOverrides: { leaseMs: 1 } },
  ]
  const message = complaint(environment({ MERCHANTS_FILE: fileOf(JSON.stringify({ merchants })) }))
  assert.match(message, /one stands twice/)
  assert.match(message, /merchant two: a secret must be given as env:NAME or file:/)
  assert.match(message, /merchant three: .*leaseMs/)
  assert.doesNotMatch(message, /in-the-clear/)
})
