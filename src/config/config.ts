import { createSecretKey, type KeyObject } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { z } from 'zod'
import type { ListenAddress } from '../platform/http.ts'
import type { KafkaConnection } from '../platform/kafka/connection.ts'
import type { RegistryConnection } from '../platform/registry/registry.ts'
import type { SealingKeys } from '../platform/seal.ts'
import { withoutLastSlashes } from '../text/text.ts'
import { faultOf } from './fault.ts'
import { address, hasUser, oneOf, whole } from './fields.ts'
import { MERCHANT_VARIABLES, merchantByVariables } from './merchant-variables.ts'
import type { Merchant } from './merchants.ts'
import { merchantsByFile } from './merchants-file.ts'
import { withSecretFiles } from './secret.ts'

/** Every setting, read once and checked. Nothing else reads the environment. */
export type Config = {
  databaseUrl: string
  databaseConnections: number
  kafka: KafkaConnection
  kafkaGroup: string
  topicPrefix: string
  topics: { partitions: number; replication: number }
  registry: RegistryConnection
  /** Where the gateway reaches the callback endpoint, without a trailing slash; null: where payoutd listens. */
  publicUrl: string | null
  publicAt: ListenAddress
  internalAt: ListenAddress
  sealing: SealingKeys
  fingerprintKey: KeyObject
  merchants: ReadonlyMap<string, Merchant>
  inFlight: number
  /** Months of history to keep besides the current one; null: all. */
  historyMonths: number | null
  logLevel: string
}

const KEY_BYTES = 32
const KEY = `must be ${KEY_BYTES} random bytes in base64 (openssl rand -base64 ${KEY_BYTES})`
const KEYS =
  'must be id:key pairs with commas between, id 1 to 255, key 32 random bytes in base64 ' +
  `(for the first: echo 1:$(openssl rand -base64 ${KEY_BYTES}))`
const BROKERS = 'must be host:port, with commas between several, for example kafka-1:9092,kafka-2:9092'
const port = whole(0, 65_535)
const count = whole(1)

const key = z.string(KEY).transform((value, context) => {
  const bytes = Buffer.from(value, 'base64')
  if (bytes.length === KEY_BYTES) return createSecretKey(bytes)
  context.addIssue({ code: 'custom', message: KEY })
  return z.NEVER
})

const sealingKeys = z.string(KEYS).transform((value, context): SealingKeys => {
  const keys = new Map<number, KeyObject>()
  for (const entry of value.split(',')) {
    const [, id, secret] = /^(\d{1,3}):(.+)$/.exec(entry.trim()) ?? []
    const parsed = key.safeParse(secret ?? '')
    if (id === undefined || Number(id) < 1 || Number(id) > 255 || !parsed.success) {
      context.addIssue({ code: 'custom', message: KEYS })
      return z.NEVER
    }
    keys.set(Number(id), parsed.data)
  }
  return { current: Math.max(...keys.keys()), keys }
})

const brokers = z
  .string(BROKERS)
  .transform((list) => list.split(',').map((broker) => broker.trim()))
  .refine((list) => list.every((broker) => /^[^\s:/@]+:\d{1,5}$/.test(broker)), BROKERS)

/** PostgreSQL's driver reads the files that its address names, but its error would not say what they are for. */
function namesReadableFiles({ value, issues }: z.core.ParsePayload<string>): void {
  if (!URL.canParse(value)) return
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const file = new URL(value).searchParams.get(name)
    if (file === null) continue
    try {
      accessSync(file, constants.R_OK)
    } catch {
      const message = `names a file as ${name} that cannot be read: ${file}`
      issues.push({ code: 'custom', message, input: value })
    }
  }
}

const environment = z.object({
  DATABASE_URL: address(/^postgres(ql)?$/, 'postgres://user:password@host/payoutd').check(namesReadableFiles),
  DATABASE_CONNECTIONS: count.default(8),
  KAFKA_BROKERS: brokers,
  KAFKA_SSL: z.stringbool({ error: 'must be true or false' }).default(false),
  KAFKA_SASL_MECHANISM: oneOf(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_USERNAME: z.string().default(''),
  KAFKA_PASSWORD: z.string().default(''),
  KAFKA_GROUP: z.string().default('payoutd'),
  TOPIC_PREFIX: z.string().default(''),
  TOPIC_PARTITIONS: count.default(6),
  TOPIC_REPLICATION: count.default(1),
  SCHEMA_REGISTRY_URL: address(/^https?$/, 'http://host:8081').refine((text) => !hasUser(text), {
    error: 'must be without user and password: set SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD',
  }),
  SCHEMA_REGISTRY_USERNAME: z.string().optional(),
  SCHEMA_REGISTRY_PASSWORD: z.string().default(''),
  PUBLIC_URL: address(/^https?$/, 'https://payouts.example').optional(),
  PUBLIC_HOST: z.string().default('127.0.0.1'),
  PUBLIC_PORT: port.default(8080),
  INTERNAL_HOST: z.string().default('127.0.0.1'),
  INTERNAL_PORT: port.default(9464),
  ENCRYPTION_KEYS: sealingKeys,
  FINGERPRINT_KEY: key,
  IN_FLIGHT: count.default(256),
  HISTORY_MONTHS: count.optional(),
  LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'silent']).default('info'),
})

type Environment = z.output<typeof environment>

/** Every variable that payoutd reads, except the NAME_FILE of each secret. */
export const VARIABLES = [
  ...Object.keys(environment.shape),
  'MERCHANTS_FILE',
  ...Object.values(MERCHANT_VARIABLES),
]

const GATEWAY_SECRETS = ['GATEWAY_KEY', 'GATEWAY_FORMER_KEYS']

/** Never shown; each may also be given as NAME_FILE, the path of a file that contains it. */
export const SECRETS = [
  'DATABASE_URL',
  'KAFKA_PASSWORD',
  'SCHEMA_REGISTRY_PASSWORD',
  'ENCRYPTION_KEYS',
  'FINGERPRINT_KEY',
  ...GATEWAY_SECRETS,
]

const SERVERS = ['DATABASE_URL', 'KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL', 'GATEWAY_BASE_URL', 'MERCHANTS_FILE']

/** Thrown with every wrong or missing variable at once; the message is for people. */
export class ConfigError extends Error {
  /** Whether no server is named either: then the operator has set nothing yet. */
  readonly namesNoServer: boolean

  constructor(faults: readonly string[], given: NodeJS.ProcessEnv) {
    super(`settings are missing or wrong:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
    this.namesNoServer = SERVERS.every((name) => given[name] === undefined)
  }
}

/** Reads the variables of the environment. Throws a ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const { env: given, faults: secretFaults } = withSecretFiles(whatIsSet(env), SECRETS)
  const parsed = environment.safeParse(given)
  const issues = parsed.error?.issues ?? []
  const { merchants, faults: merchantFaults } = merchantsOf(given)
  const faults = [
    ...secretFaults,
    ...issues.map(({ path, message }) => {
      const name = String(path[0])
      return `${name} ${faultOf(given[name], message, { secret: SECRETS.includes(name) })}`
    }),
    ...merchantFaults,
  ]
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults, given)
  return configOf(parsed.data, merchants)
}

/**
 * Reads only the merchants, by their ids, for commands that need neither database nor Kafka, whose settings may be missing or
 * wrong. Throws a ConfigError.
 */
export function readConfiguredMerchants(env: NodeJS.ProcessEnv): ReadonlyMap<string, Merchant> {
  const { env: given, faults: secretFaults } = withSecretFiles(whatIsSet(env), GATEWAY_SECRETS)
  const { merchants, faults } = merchantsOf(given)
  if (secretFaults.length + faults.length > 0) throw new ConfigError([...secretFaults, ...faults], given)
  return merchants
}

/** Reads only the database, for commands that merely keep a record there; null: none is set. Throws a ConfigError. */
export function readDatabaseUrl(env: NodeJS.ProcessEnv): string | null {
  const { env: given, faults } = withSecretFiles(whatIsSet(env), ['DATABASE_URL'])
  if (faults.length === 0 && given.DATABASE_URL === undefined) return null
  const parsed = environment.shape.DATABASE_URL.safeParse(given.DATABASE_URL)
  if (faults.length === 0 && parsed.success) return parsed.data
  const fault = parsed.error?.issues[0]?.message ?? ''
  const named = `DATABASE_URL ${faultOf(given.DATABASE_URL, fault, { secret: true })}`
  throw new ConfigError(faults.length > 0 ? faults : [named], given)
}

/** An empty variable counts as not set: a compose file omits a variable that way. */
const whatIsSet = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))

/** One merchant by variables, or many by a file. */
const merchantsOf = (env: NodeJS.ProcessEnv) =>
  env.MERCHANTS_FILE ? merchantsByFile(env.MERCHANTS_FILE, env) : merchantByVariables(env)

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
    kafkaGroup: env.TOPIC_PREFIX + env.KAFKA_GROUP,
    topicPrefix: env.TOPIC_PREFIX,
    topics: { partitions: env.TOPIC_PARTITIONS, replication: env.TOPIC_REPLICATION },
    registry: {
      url: env.SCHEMA_REGISTRY_URL,
      ...(env.SCHEMA_REGISTRY_USERNAME && {
        auth: { username: env.SCHEMA_REGISTRY_USERNAME, password: env.SCHEMA_REGISTRY_PASSWORD },
      }),
    },
    publicUrl: env.PUBLIC_URL === undefined ? null : withoutLastSlashes(env.PUBLIC_URL),
    publicAt: { host: env.PUBLIC_HOST, port: env.PUBLIC_PORT, portSetting: 'PUBLIC_PORT' },
    internalAt: { host: env.INTERNAL_HOST, port: env.INTERNAL_PORT, portSetting: 'INTERNAL_PORT' },
    sealing: env.ENCRYPTION_KEYS,
    fingerprintKey: env.FINGERPRINT_KEY,
    merchants,
    inFlight: env.IN_FLIGHT,
    historyMonths: env.HISTORY_MONTHS ?? null,
    logLevel: env.LOG_LEVEL,
  }
}
