import { createSecretKey, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import type { KafkaConnection } from '../platform/kafka/connection.ts'
import type { RegistryConnection } from '../platform/kafka/registry.ts'
import type { SealingKeys } from '../platform/seal.ts'
import { type Merchant, merchantsFile, readMerchants } from './merchants.ts'
import { withSecretFiles } from './secret.ts'

/** Everything that can be set, read once and checked. Nothing else reads the environment. */
export type Config = {
  databaseUrl: string
  databaseConnections: number
  kafka: KafkaConnection
  kafkaGroup: string
  topicPrefix: string
  topics: { partitions: number; replication: number }
  registry: RegistryConnection
  /** Where the gateway reaches the callback door, without a slash at the end; null: where it listens. */
  publicUrl: string | null
  publicAt: { host: string; port: number }
  internalAt: { host: string; port: number }
  sealing: SealingKeys
  fingerprintKey: KeyObject
  merchants: ReadonlyMap<string, Merchant>
  inFlight: number
  /** Months of history to keep beside the present one; null: all. */
  historyMonths: number | null
  logLevel: string
}

const KEY_BYTES = 32
const text = z.string().min(1)
const port = z.coerce.number().int().min(0).max(65_535)
const count = z.coerce.number().int().positive()

const key = text.transform((value, context) => {
  const bytes = Buffer.from(value, 'base64')
  if (bytes.length === KEY_BYTES) return createSecretKey(bytes)
  context.addIssue({
    code: 'custom',
    message: `must be ${KEY_BYTES} random bytes in base64 (openssl rand -base64 ${KEY_BYTES})`,
  })
  return z.NEVER
})

const sealingKeys = text.transform((value, context): SealingKeys => {
  const keys = new Map<number, KeyObject>()
  for (const entry of value.split(',')) {
    const [, id, secret] = /^(\d{1,3}):(.+)$/.exec(entry.trim()) ?? []
    const parsed = key.safeParse(secret ?? '')
    if (id === undefined || Number(id) < 1 || Number(id) > 255 || !parsed.success) {
      context.addIssue({
        code: 'custom',
        message: 'must be id:key pairs with commas between, id 1 to 255, key 32 bytes in base64',
      })
      return z.NEVER
    }
    keys.set(Number(id), parsed.data)
  }
  return { current: Math.max(...keys.keys()), keys }
})

const environment = z.object({
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  DATABASE_CONNECTIONS: count.default(8),
  KAFKA_BROKERS: text.transform((list) => list.split(',').map((broker) => broker.trim())),
  KAFKA_SSL: z.stringbool().default(false),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_USERNAME: z.string().default(''),
  KAFKA_PASSWORD: z.string().default(''),
  KAFKA_GROUP: text.default('payoutd'),
  TOPIC_PREFIX: z.string().default(''),
  TOPIC_PARTITIONS: count.default(6),
  TOPIC_REPLICATION: count.default(1),
  SCHEMA_REGISTRY_URL: z.url({ protocol: /^https?$/ }),
  SCHEMA_REGISTRY_USERNAME: text.optional(),
  SCHEMA_REGISTRY_PASSWORD: z.string().default(''),
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  PUBLIC_HOST: text.default('127.0.0.1'),
  PUBLIC_PORT: port.default(8080),
  INTERNAL_HOST: text.default('127.0.0.1'),
  INTERNAL_PORT: port.default(9464),
  ENCRYPTION_KEYS: sealingKeys,
  FINGERPRINT_KEY: key,
  MERCHANTS_FILE: text.optional(),
  MERCHANT_ID: text.default('default'),
  GATEWAY_BASE_URL: text.optional(),
  GATEWAY_MCH_ID: text.optional(),
  GATEWAY_KEY: text.optional(),
  GATEWAY_DIALECT: text.optional(),
  MIN_AMOUNT_RUPEES: text.optional(),
  MAX_AMOUNT_RUPEES: text.optional(),
  MAX_IN_FLIGHT: text.optional(),
  RATE_PER_SECOND: text.optional(),
  FEE_ESTIMATE_PAISE: text.optional(),
  DEADLINE_HOURS: text.optional(),
  IN_FLIGHT: count.default(256),
  HISTORY_MONTHS: count.optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('info'),
})

type Environment = z.output<typeof environment>

/** Never shown; each may also be given as NAME_FILE, the path of a file that holds it. */
const SECRETS = [
  'DATABASE_URL',
  'KAFKA_PASSWORD',
  'SCHEMA_REGISTRY_PASSWORD',
  'ENCRYPTION_KEYS',
  'FINGERPRINT_KEY',
  'GATEWAY_KEY',
]

/** Thrown with every wrong or missing variable at once; the message is for people. */
export class ConfigError extends Error {
  constructor(faults: readonly string[]) {
    super(`the configuration is not complete:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}

/** Reads variables of the environment. Throws a ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  // An empty variable is one that is not set: that is how a compose file leaves one out.
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const { env: given, faults: secretFaults } = withSecretFiles(set, SECRETS)
  const parsed = environment.safeParse(given)
  const issues = parsed.error?.issues ?? []
  const { merchants, faults: merchantFaults } = merchantsOf(given)
  const faults = [
    ...secretFaults,
    ...issues.map(({ path, message }) => describe(String(path[0]), message, given)),
    ...merchantFaults,
  ]
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults)
  return configOf(parsed.data, merchants)
}

function describe(name: string, message: string, env: NodeJS.ProcessEnv): string {
  const value = env[name]
  const got =
    value === undefined ? 'is not set' : SECRETS.includes(name) ? 'is set (not shown)' : `is "${value}"`
  return `${name} ${got}: ${message}`
}

/** One merchant by variables, or many by a file. */
function merchantsOf(env: NodeJS.ProcessEnv): ReturnType<typeof readMerchants> {
  if (env.MERCHANTS_FILE) {
    try {
      return readMerchants(merchantsFile(env.MERCHANTS_FILE), env)
    } catch (error) {
      return { merchants: new Map(), faults: [error instanceof Error ? error.message : String(error)] }
    }
  }
  const missing = ['GATEWAY_BASE_URL', 'GATEWAY_MCH_ID', 'GATEWAY_KEY'].filter((name) => !env[name])
  if (missing.length > 0) {
    return {
      merchants: new Map(),
      faults: missing.map((name) => `${name} is not set: give it, or a MERCHANTS_FILE`),
    }
  }
  const input = {
    id: env.MERCHANT_ID ?? 'default',
    baseUrl: env.GATEWAY_BASE_URL,
    mchId: env.GATEWAY_MCH_ID,
    key: 'env:GATEWAY_KEY',
    dialect: env.GATEWAY_DIALECT,
    minAmountRupees: env.MIN_AMOUNT_RUPEES,
    maxAmountRupees: env.MAX_AMOUNT_RUPEES,
    maxInFlight: env.MAX_IN_FLIGHT,
    ratePerSecond: env.RATE_PER_SECOND,
    feeEstimatePaise: env.FEE_ESTIMATE_PAISE,
    deadlineHours: env.DEADLINE_HOURS,
  }
  return readMerchants([input], env)
}

function configOf(env: Environment, merchants: ReadonlyMap<string, Merchant>): Config {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_USERNAME: username, KAFKA_PASSWORD: password } = env
  return {
    databaseUrl: env.DATABASE_URL,
    databaseConnections: env.DATABASE_CONNECTIONS,
    kafka: {
      brokers: env.KAFKA_BROKERS,
      clientId: 'payoutd',
      ssl: env.KAFKA_SSL,
      ...(mechanism && { sasl: { mechanism, username, password } as NonNullable<KafkaConnection['sasl']> }),
    },
    kafkaGroup: env.KAFKA_GROUP,
    topicPrefix: env.TOPIC_PREFIX,
    topics: { partitions: env.TOPIC_PARTITIONS, replication: env.TOPIC_REPLICATION },
    registry: {
      url: env.SCHEMA_REGISTRY_URL,
      ...(env.SCHEMA_REGISTRY_USERNAME && {
        auth: { username: env.SCHEMA_REGISTRY_USERNAME, password: env.SCHEMA_REGISTRY_PASSWORD },
      }),
    },
    publicUrl: env.PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    publicAt: { host: env.PUBLIC_HOST, port: env.PUBLIC_PORT },
    internalAt: { host: env.INTERNAL_HOST, port: env.INTERNAL_PORT },
    sealing: env.ENCRYPTION_KEYS,
    fingerprintKey: env.FINGERPRINT_KEY,
    merchants,
    inFlight: env.IN_FLIGHT,
    historyMonths: env.HISTORY_MONTHS ?? null,
    logLevel: env.LOG_LEVEL,
  }
}
