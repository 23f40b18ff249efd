import { readFile, rename, writeFile } from 'node:fs/promises'
import type { Addresses } from '../servers/addresses.ts'
import type { SavedDemo } from './saved-demo.ts'

/** The environment of a payoutd, by the names that src/config reads. */
export type DemoSettings = Record<string, string>

export const MERCHANT_ID = 'acme'

/** How payoutd and its commands reach a stack. What `given` (this process's environment) sets stays. */
export function settingsFor(addresses: Addresses, kept: SavedDemo, given: NodeJS.ProcessEnv): DemoSettings {
  const usual = {
    DATABASE_URL: addresses.databaseUrl,
    KAFKA_BROKERS: addresses.kafkaBrokers.join(','),
    SCHEMA_REGISTRY_URL: addresses.schemaRegistryUrl,
    MERCHANT_ID,
    GATEWAY_BASE_URL: addresses.gatewayBaseUrl,
    GATEWAY_MCH_ID: addresses.gatewayMchId,
    GATEWAY_KEY: addresses.gatewayKey,
    // The dialect of a given gateway is not known here.
    GATEWAY_DIALECT: addresses.gatewayMchId && 'sandbox',
    ENCRYPTION_KEYS: kept.encryptionKeys,
    FINGERPRINT_KEY: kept.fingerprintKey,
    PUBLIC_HOST: '127.0.0.1',
    PUBLIC_PORT: String(kept.publicPort),
    INTERNAL_HOST: '127.0.0.1',
    INTERNAL_PORT: String(kept.internalPort),
  }
  const settings = Object.entries(usual).map(([name, value]) => [name, given[name] || value] as const)
  return Object.fromEntries(settings.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** What payoutd and its commands must agree on, beside `settingsFor`. */
const SHARED = [
  'KAFKA_SSL',
  'KAFKA_SASL_MECHANISM',
  'KAFKA_USERNAME',
  'KAFKA_PASSWORD',
  'KAFKA_GROUP',
  'TOPIC_PREFIX',
  'TOPIC_PARTITIONS',
  'TOPIC_REPLICATION',
  'SCHEMA_REGISTRY_USERNAME',
  'SCHEMA_REGISTRY_PASSWORD',
  'PUBLIC_URL',
  'MERCHANTS_FILE',
  'GATEWAY_FORMER_KEYS',
  'GATEWAY_CA_FILE',
  'GATEWAY_CERT_FILE',
  'GATEWAY_CERT_KEY_FILE',
  'MIN_AMOUNT_RUPEES',
  'MAX_AMOUNT_RUPEES',
  'MAX_IN_FLIGHT',
  'RATE_PER_SECOND',
  'FEE_ESTIMATE_PAISE',
  'DEADLINE_HOURS',
  'PAY_PERIOD',
  'HOLD_DUPLICATES',
  'HOLD_CHANGED_BENEFICIARIES',
]

/** What `given` sets of these, and the secrets that its merchants file names. The file must be valid. */
export async function sharedSettings(given: NodeJS.ProcessEnv): Promise<DemoSettings> {
  const file = given.MERCHANTS_FILE ? await readFile(given.MERCHANTS_FILE, 'utf8') : ''
  const secrets = [...file.matchAll(/"env:([^"]+)"/g)].map(([, name = '']) => name)
  const settings = [...SHARED, ...secrets].map((name) => [name, given[name]] as const)
  return Object.fromEntries(settings.filter((entry): entry is [string, string] => Boolean(entry[1])))
}

/**
 * What `settingsFor` will return, with placeholders for what only a start creates: the addresses of own servers,
 * keys and ports. Use it to find faults in `given` before anything starts.
 */
export function settingsBefore(given: NodeJS.ProcessEnv): DemoSettings {
  const key = Buffer.alloc(32).toString('base64')
  const gateway = { gatewayBaseUrl: 'http://127.0.0.1', gatewayMchId: '1000100', gatewayKey: 'unknown yet' }
  const addresses: Addresses = {
    databaseUrl: 'postgres://127.0.0.1',
    kafkaBrokers: ['127.0.0.1:9092'],
    schemaRegistryUrl: 'http://127.0.0.1',
    ...(given.GATEWAY_BASE_URL
      ? { gatewayBaseUrl: given.GATEWAY_BASE_URL, gatewayMchId: undefined, gatewayKey: undefined }
      : gateway),
  }
  const kept: SavedDemo = { encryptionKeys: `1:${key}`, fingerprintKey: key, publicPort: 0, internalPort: 0 }
  return settingsFor(addresses, kept, given)
}

/** Writes settings as `NAME='value'` lines for a shell or `--env-file`, readable by their owner only. */
export async function writeSettings(file: string, settings: DemoSettings): Promise<void> {
  const quoted = (value: string) => (value.includes("'") ? `"${value}"` : `'${value}'`)
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${quoted(value)}\n`)
  await writeFile(`${file}.new`, lines.join(''), { mode: 0o600 })
  await rename(`${file}.new`, file)
}
