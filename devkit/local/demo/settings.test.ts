import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { parseEnv } from 'node:util'
import { readConfig } from '../../../src/config/config.ts'
import { loadSavedDemo } from './saved-demo.ts'
import { settingsFor, sharedSettings, writeSettings } from './settings.ts'

const ADDRESSES = {
  databaseUrl: 'postgres://postgres:secret@127.0.0.1:5432/payoutd',
  kafkaBrokers: ['127.0.0.1:9092', '127.0.0.1:9093'],
  schemaRegistryUrl: 'http://127.0.0.1:8081/apis/ccompat/v7',
  gatewayBaseUrl: 'http://127.0.0.1:8790',
  gatewayMchId: '1000100',
  gatewayKey: 'a key with # and spaces',
}

async function folder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'payoutd-'))
  t.after(() => rm(dir, { recursive: true }))
  return dir
}

test('keys and ports stay the same from one start to the next, in a file that only the owner can read', async (t) => {
  const dir = await folder(t)
  const kept = await loadSavedDemo(dir, 'any')
  assert.deepEqual(await loadSavedDemo(dir, 'any'), kept)
  assert.equal((await stat(path.join(dir, 'payoutd.json'))).mode & 0o777, 0o600)
})

test('a port that another program has taken meanwhile is replaced', async (t) => {
  const dir = await folder(t)
  const kept = await loadSavedDemo(dir, 'any')
  const stranger = createServer()
  await new Promise<void>((resolve) => stranger.listen(kept.publicPort, '127.0.0.1', resolve))
  t.after(() => stranger.close())
  const now = await loadSavedDemo(dir, 'any')
  assert.notEqual(now.publicPort, kept.publicPort)
  assert.deepEqual({ ...now, publicPort: kept.publicPort }, kept)
})

test('payoutd understands the settings written for it', async (t) => {
  const dir = await folder(t)
  const file = path.join(dir, 'stack.env')
  const settings = settingsFor(ADDRESSES, await loadSavedDemo(dir, 'any'), {})
  await writeSettings(file, settings)
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  const config = readConfig(parseEnv(await readFile(file, 'utf8')))
  const merchant = config.merchants.get('acme')
  assert.equal(config.databaseUrl, ADDRESSES.databaseUrl)
  assert.deepEqual(config.kafka.brokers, ADDRESSES.kafkaBrokers)
  assert.equal(merchant?.key, ADDRESSES.gatewayKey)
  assert.equal(merchant?.dialect.duplicateApply, 'refused')
})

test('what the environment sets stays, and no dialect is assumed for a given gateway', async (t) => {
  const given = {
    GATEWAY_BASE_URL: 'https://pay.example',
    GATEWAY_MCH_ID: '7',
    GATEWAY_KEY: 'k',
    PUBLIC_PORT: '18080',
  }
  const addresses = {
    ...ADDRESSES,
    gatewayBaseUrl: given.GATEWAY_BASE_URL,
    gatewayMchId: undefined,
    gatewayKey: undefined,
  }
  const settings = settingsFor(addresses, await loadSavedDemo(await folder(t), 'any'), given)
  assert.deepEqual({ ...settings, ...given }, settings)
  assert.equal(settings.GATEWAY_DIALECT, undefined)
})

test('commands get the same merchants, topics and terms as payoutd, with their secrets', async (t) => {
  const dir = await folder(t)
  const merchant = { id: 'beta', baseUrl: 'https://pay.example', mchId: '7', key: 'env:BETA_KEY' }
  const file = path.join(dir, 'merchants.json')
  await writeFile(file, JSON.stringify({ merchants: [merchant] }))
  const given = {
    MERCHANTS_FILE: file,
    TOPIC_PREFIX: 'pre.',
    BETA_KEY: 'a-secret-word',
    HOME: dir,
    PAY_PERIOD: '',
  }
  const shared = await sharedSettings(given)
  assert.deepEqual(shared, { MERCHANTS_FILE: file, TOPIC_PREFIX: 'pre.', BETA_KEY: 'a-secret-word' })
  const config = readConfig({ ...shared, ...settingsFor(ADDRESSES, await loadSavedDemo(dir, 'any'), given) })
  assert.deepEqual([...config.merchants.keys()], ['beta'])
})
