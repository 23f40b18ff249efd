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

test('installations that share a Kafka with prefixes of their own have consumer groups of their own', () => {
  const groupOf = (extra: NodeJS.ProcessEnv) => readConfig(environment(extra)).kafkaGroup
  assert.equal(groupOf({}), 'payoutd')
  assert.equal(groupOf({ TOPIC_PREFIX: 'test.' }), 'test.payoutd')
  assert.equal(groupOf({ TOPIC_PREFIX: 'test.', KAFKA_GROUP: 'payroll' }), 'test.payroll')
})

test("a merchant's settings include former keys and accounts, and one account never stands twice", () => {
  const byVariables = readConfig(environment({ GATEWAY_FORMER_KEYS: 'old-1 old-2' })).merchants.get('default')
  assert.deepEqual(byVariables?.formerKeys, ['old-1', 'old-2'])
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'config-')), 'merchants.json')
  after(() => rmSync(path.dirname(file), { recursive: true }))
  const account = { baseUrl: 'https://gateway.example', mchId: '1', key: 'env:GATEWAY_KEY' }
  const former = { ...account, mchId: '2', formerKeys: ['env:OLD'], dialect: 'sandbox' }
  const written = (formerAccounts: readonly object[]) => {
    writeFileSync(file, JSON.stringify({ merchants: [{ ...account, id: 'acme', formerAccounts }] }))
    return environment({ MERCHANTS_FILE: file, OLD: 'older-secret' })
  }
  const [read] = readConfig(written([former])).merchants.get('acme')?.formerAccounts ?? []
  assert.deepEqual([read?.mchId, read?.formerKeys, read?.dialectName], ['2', ['older-secret'], 'sandbox'])
  assert.match(complaint(written([account])), /formerAccounts names one account twice/)
  assert.match(complaint(written([{ ...former, mchId: 7 }])), /formerAccounts\.0\.mchId is 7/)
})

test('amounts are whole rupees in the settings, and paise inside', () => {
  const { merchants } = readConfig(environment({ MIN_AMOUNT_RUPEES: '100', MAX_AMOUNT_RUPEES: '500000' }))
  assert.deepEqual(merchants.get('default')?.limits, { minAmount: 10_000n, maxAmount: 50_000_000n })
  assert.match(complaint(environment({ MIN_AMOUNT_RUPEES: '1e3' })), /MIN_AMOUNT_RUPEES is "1e3"/)
})

test('what payoutd holds for a person is a setting of each merchant, by variable or in the file', () => {
  const holds = (env: NodeJS.ProcessEnv, id = 'default') => {
    const merchant = readConfig(environment(env)).merchants.get(id)
    return [merchant?.payPeriod, merchant?.holdDuplicates, merchant?.holdChangedBeneficiaries]
  }
  assert.deepEqual(holds({}), ['month', true, true])
  assert.deepEqual(
    holds({ PAY_PERIOD: 'week', HOLD_DUPLICATES: 'false', HOLD_CHANGED_BENEFICIARIES: 'false' }),
    ['week', false, false],
  )
  const refunds = { id: 'refunds', baseUrl: 'https://gateway.example', mchId: '1', key: 'env:GATEWAY_KEY' }
  const file = fileOf(
    JSON.stringify({ merchants: [{ ...refunds, holdDuplicates: false, payPeriod: 'day' }] }),
  )
  assert.deepEqual(holds({ MERCHANTS_FILE: file }, 'refunds'), ['day', false, true])
  const message = complaint(environment({ PAY_PERIOD: 'year', HOLD_DUPLICATES: 'maybe' }))
  assert.match(message, /PAY_PERIOD is "year": must be one of day, week, month/)
  assert.match(message, /HOLD_DUPLICATES is "maybe": must be true or false/)
})

test('one error names every wrong or missing setting', () => {
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
  assert.doesNotMatch(message, /KAFKA_BROKERS/)
})

test('each message names the variable, its value, and what it must be', () => {
  const message = complaint(
    environment({
      DATABASE_URL: '',
      KAFKA_BROKERS: 'foo',
      KAFKA_SSL: 'maybe',
      SCHEMA_REGISTRY_URL: 'nonsense',
      PUBLIC_PORT: '99999',
      IN_FLIGHT: 'lots',
      HISTORY_MONTHS: '0',
      LOG_LEVEL: 'loud',
      GATEWAY_BASE_URL: 'ftp://gateway.example',
      GATEWAY_MCH_ID: '',
      MAX_AMOUNT_RUPEES: '-4',
      FEE_ESTIMATE_PAISE: '1.5',
    }),
  )
  assert.deepEqual(message.split('\n').slice(1), [
    '  DATABASE_URL is not set: must be an address, for example postgres://user:password@host/payoutd',
    '  KAFKA_BROKERS is "foo": must be host:port, with commas between several, for example kafka-1:9092,kafka-2:9092',
    '  KAFKA_SSL is "maybe": must be true or false',
    '  SCHEMA_REGISTRY_URL is "nonsense": must be an address, for example http://host:8081',
    '  PUBLIC_PORT is "99999": must be a whole number from 0 to 65535',
    '  IN_FLIGHT is "lots": must be a whole number of at least 1',
    '  HISTORY_MONTHS is "0": must be a whole number of at least 1',
    '  LOG_LEVEL is "loud": must be one of fatal, error, warn, info, debug, silent',
    '  GATEWAY_BASE_URL is "ftp://gateway.example": must be an address, for example https://gateway.example',
    '  GATEWAY_MCH_ID is not set: give the merchant number at the gateway, for example 1000100, or a MERCHANTS_FILE',
    '  MAX_AMOUNT_RUPEES is "-4": must be whole rupees, for example 500',
    '  FEE_ESTIMATE_PAISE is "1.5": must be a whole number of at least 0',
  ])
})

test('the amount limit of the file is never negative', () => {
  const merchant = { id: 'one', baseUrl: 'https://gateway.example', mchId: '1', key: 'env:GATEWAY_KEY' }
  const file = fileOf(JSON.stringify({ merchants: [{ ...merchant, minAmountRupees: -4 }] }))
  assert.match(
    complaint(environment({ MERCHANTS_FILE: file })),
    /merchant one, minAmountRupees is -4: must be whole rupees/,
  )
})

test('the error about an unknown dialect lists the known ones', () => {
  assert.match(
    complaint(environment({ GATEWAY_DIALECT: 'nope' })),
    /GATEWAY_DIALECT cannot be used: there is no dialect nope: default, sandbox, or the path of a \.json file/,
  )
})

test('the CA files of a gateway must be readable, and a certificate needs its key', () => {
  const pem = fileOf('made up')
  const tls = { GATEWAY_CA_FILE: pem, GATEWAY_CERT_FILE: pem, GATEWAY_CERT_KEY_FILE: pem }
  const [merchant] = readConfig(environment(tls)).merchants.values()
  assert.deepEqual(merchant?.tls, { caFile: pem, certFile: pem, keyFile: pem })
  const message = complaint(environment({ GATEWAY_CA_FILE: '/none/ca.pem', GATEWAY_CERT_FILE: pem }))
  assert.match(message, /GATEWAY_CA_FILE cannot be used: ENOENT/)
  assert.match(message, /GATEWAY_CERT_FILE is used together with its key file/)
})

test('a wrong secret is never shown', () => {
  const message = complaint(
    environment({
      ENCRYPTION_KEYS: '1:my-secret-key',
      FINGERPRINT_KEY: 'my-secret-key',
      DATABASE_URL: 'mysql://u:my-secret-key@h',
      SCHEMA_REGISTRY_URL: 'htp://u:my-secret-key@h',
      KAFKA_BROKERS: 'u:my-secret-key@h:9092',
      GATEWAY_BASE_URL: 'ftp://u:my-secret-key@h',
    }),
  )
  assert.doesNotMatch(message, /my-secret-key/)
})

test('an address is refused if a part of its password may stand behind its host, and no other @ is', () => {
  for (const password of ['a/b', '12345?x', '1#b', 'a?sslmode=x'])
    assert.match(
      complaint(environment({ DATABASE_URL: `postgres://payoutd:${password}@db.example:5432/payoutd` })),
      /DATABASE_URL/,
      password,
    )
  for (const url of [
    'p%40ss@db.example/payoutd',
    'p@ss@db.example/payoutd',
    'p@db.example/payoutd?application_name=a@b',
  ])
    readConfig(environment({ DATABASE_URL: `postgres://payoutd:${url}` }))
})

test('an unreadable file in DATABASE_URL is named, with its purpose', () => {
  const url = `${environment({}).DATABASE_URL}?sslmode=verify-full&sslrootcert=/no/such/ca.pem`
  assert.match(
    complaint(environment({ DATABASE_URL: url })),
    /DATABASE_URL.* names a file as sslrootcert that cannot be read: \/no\/such\/ca\.pem/,
  )
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

test('each secret may be in a file instead, which may end with a newline', () => {
  const env = environment(SASL)
  const known = readConfig(env)
  for (const name of SECRETS) {
    const { [name]: secret, ...rest } = env
    assert.ok(secret, name)
    assert.deepEqual(readConfig({ ...rest, [`${name}_FILE`]: fileOf(`${secret}\n`) }), known, name)
  }
})

test('a secret given both by variable and by file is refused, whichever it is', () => {
  for (const name of SECRETS) {
    const message = complaint(environment({ ...SASL, [`${name}_FILE`]: fileOf('in-the-file') }))
    assert.match(message, new RegExp(`${name} and ${name}_FILE are both set`))
    assert.doesNotMatch(message, /in-the-file|-secret/)
  }
})

test('a secret file that is missing, empty or wrong is reported under its variable, and never shown', () => {
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

test('a file describes many merchants, each key by reference', () => {
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
    { ...entry, id: 'three', dialectOverrides: { leaseMs: 1, sign: { keySuffix: 'in-the-clear' } } },
    { ...entry, id: 'four', dialectOverrides: { leaseMs: 1 } },
  ]
  const message = complaint(environment({ MERCHANTS_FILE: fileOf(JSON.stringify({ merchants })) }))
  assert.match(message, /merchant one appears twice/)
  assert.match(message, /merchant two, key cannot be used: a secret must be given as env:NAME or file:/)
  assert.match(message, /merchant three, dialect setting sign\.keySuffix must be one of key, appSecret$/m)
  assert.match(message, /merchant four, dialect setting leaseMs must be more than a send can take .*57000$/m)
  assert.doesNotMatch(message, /in-the-clear/)
})

test("a fault of a merchants file names the merchant's id, or its place if it has none", () => {
  const entry = { baseUrl: 'https://gateway.example', mchId: '1', key: 'env:GATEWAY_KEY' }
  const merchants = [
    { ...entry, id: 'one', dialekt: 'sandbox', deadlineHours: 0 },
    { ...entry, mchId: 7, key: ['in-the-clear'] },
    { ...entry, id: 'not one', mchId: '1000100 ' },
    ['in-the-clear'],
  ]
  const message = complaint(environment({ MERCHANTS_FILE: fileOf(JSON.stringify({ merchants })) }))
  assert.deepEqual(message.split('\n').slice(1), [
    '  merchant one, deadlineHours is 0: must be a whole number of at least 1',
    '  merchant one, dialekt is no setting of a merchant',
    '  merchant 2, id is not set: must be 1 to 64 of A–Z a–z 0–9 . _ : / -',
    '  merchant 2, mchId is 7: must be the merchant number at the gateway, for example "1000100"',
    '  merchant 2, key is set (not shown): must be env:NAME or file:/path',
    '  merchant 3, id is "not one": must be 1 to 64 of A–Z a–z 0–9 . _ : / -',
    '  merchant 3, mchId is "1000100 ": must be the merchant number at the gateway, for example "1000100"',
    '  merchant 4 must be an object of settings',
  ])
})

test('a missing merchants file, or one that is something else, is reported as such', () => {
  const fault = (file: string) => complaint(environment({ MERCHANTS_FILE: file })).split('\n')[1]
  assert.equal(fault('/nowhere.json'), '  MERCHANTS_FILE is "/nowhere.json": there is no such file')
  assert.equal(fault('/'), '  MERCHANTS_FILE is "/": the file cannot be read (EISDIR)')
  const list = fileOf('["in-the-clear"]')
  assert.equal(fault(list), `  MERCHANTS_FILE is "${list}": must be the path of JSON with a list "merchants"`)
})
