import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { encoderOf } from '../src/app/ledger.ts'
import { type Config, readConfig } from '../src/config/config.ts'
import type { Merchant } from '../src/config/merchants.ts'
import type { PayoutCommand } from '../src/domain/commands/command.ts'
import { paise } from '../src/domain/money.ts'
import { type ParsedCallback, readVouched, type Vouched } from '../src/gateway/callbacks/callback.ts'
import { callbackKeys } from '../src/gateway/dialect/account.ts'
import type { Dialect } from '../src/gateway/dialect/dialect.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { schemaSubjects, topicNames } from '../src/messages/topics.ts'
import type { Standing } from '../src/platform/kafka/offsets.ts'
import { type Database, sql, type Transaction } from '../src/platform/postgres/postgres.ts'
import { type Codec, openCodec, registerSchemas } from '../src/platform/registry/codec.ts'
import { connectRegistry } from '../src/platform/registry/registry.ts'
import { attemptsMade } from '../src/stages/dispatch/sql/claim.ts'
import { balanceWatermark, saveBalance } from '../src/stages/dispatch/sql/funds.ts'
import type { MerchantTerms } from '../src/stages/intake/parse-command.ts'
import { beginAt } from '../src/stages/intake/sql/offsets.ts'
import { storeCommands } from '../src/stages/intake/store-commands.ts'
import { takeTurn } from '../src/stages/intake/take-turn.ts'
import { freshDatabase, type Owner, type TestDatabase } from './database.ts'

/** One for all tests of a file: schemas are registered once, and databases keep the tests apart. */
const prefix = `t${randomBytes(4).toString('hex')}.`
let codec: Promise<Codec> | undefined

/** An environment for payoutd on the test stack, with its own database and topic names. */
export const testEnvironment = (
  database: TestDatabase,
  extra: NodeJS.ProcessEnv = {},
): NodeJS.ProcessEnv => ({
  DATABASE_URL: database.url,
  KAFKA_BROKERS: process.env.TEST_KAFKA_BROKERS,
  SCHEMA_REGISTRY_URL: process.env.TEST_SCHEMA_REGISTRY_URL,
  TOPIC_PREFIX: prefix,
  TOPIC_PARTITIONS: '2',
  KAFKA_GROUP: `${prefix}${randomBytes(4).toString('hex')}`,
  PUBLIC_PORT: '0',
  INTERNAL_PORT: '0',
  ENCRYPTION_KEYS: `1:${randomBytes(32).toString('base64')}`,
  FINGERPRINT_KEY: randomBytes(32).toString('base64'),
  MERCHANT_ID: 'acme',
  GATEWAY_BASE_URL: 'http://127.0.0.1:9',
  GATEWAY_MCH_ID: '1000100',
  GATEWAY_KEY: randomBytes(12).toString('hex'),
  GATEWAY_DIALECT: 'sandbox',
  LOG_LEVEL: 'warn',
  ...extra,
})

/** A ledger in its own database, with its codec. */
export async function testLedger(owner: Owner): Promise<{ config: Config; ledger: Ledger; codec: Codec }> {
  const database = await freshDatabase(owner)
  const config = readConfig(testEnvironment(database))
  const topics = topicNames(config.topicPrefix)
  codec ??= registeredCodec(config)
  const opened = await codec
  return {
    config,
    codec: opened,
    ledger: { db: database.db, topics, encode: encoderOf(opened, topics) },
  }
}

/** Sets a ledger's position in a partition of commands, as intake does when it begins to read. */
export async function standAt(
  { db, topics }: Pick<Ledger, 'db' | 'topics'>,
  partition: number,
  standing: Standing,
): Promise<void> {
  const at = { topic: topics.commands, partition }
  await db.run(forgetStanding, at)
  await db.run(beginAt, { ...at, ...standing, before: null, beforeLogId: null })
}

const forgetStanding = sql<{ topic: string; partition: number }>`
  delete from intake_offsets where topic = ${'topic'} and partition = ${'partition'}`

/** Registers the schemas, as `payoutd migrate` does. */
export const registered = ({ registry, topicPrefix }: Config): Promise<void> =>
  registerSchemas(connectRegistry(registry), schemaSubjects(topicNames(topicPrefix)))

async function registeredCodec(config: Config): Promise<Codec> {
  await registered(config)
  return openCodec(connectRegistry(config.registry), schemaSubjects(topicNames(config.topicPrefix)))
}

const TERMS: MerchantTerms = {
  limits: { minAmount: null, maxAmount: null },
  deadlineMs: 72 * 3_600_000,
  payPeriod: 'month',
  holdDuplicates: false,
  holdChangedBeneficiaries: false,
}

/** Accepts good commands as intake does, without Kafka. Holds none of them unless `holds` says so. */
export async function accepted(
  ledger: Ledger,
  config: Config,
  commands: readonly PayoutCommand[],
  holds: Partial<MerchantTerms> = {},
): Promise<void> {
  const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
  const terms = { ...TERMS, ...holds }
  const arrivals = commands.map((each) => ({ command: each, terms, faults: [], traceparent: null }))
  await ledger.db.transaction('test', async (tx) => {
    await takeTurn(
      tx,
      arrivals.map(({ command }) => command.merchantId),
    )
    await storeCommands(tx, ledger, keys, arrivals)
  })
}

/** Promises nothing. */
export const NO_PROMISES = { duplicatesRefused: false, notPaidCodes: [] }
/** Where test payouts are sent, unless a test says otherwise. */
export const ACCOUNT = {
  accountId: 'here',
  baseUrl: 'https://gateway.example',
  settingsHash: 'h',
  promises: { duplicatesRefused: true, notPaidCodes: ['TOO_FAST', 'BALANCE_SHORT', 'LATER'] },
}

/** Reads callbacks as `parse` does, for ACCOUNT with the key and the dialect of a merchant. */
export const readerOf =
  <Report>(
    { dialect, key }: Pick<Merchant, 'dialect' | 'key'>,
    parse: (rawQuery: string, dialect: Pick<Dialect, 'sign'>, key: string) => ParsedCallback<Report>,
  ) =>
  (rawQuery: string): ParsedCallback<Vouched<Report>> =>
    readVouched([{ ...ACCOUNT, dialect, keys: callbackKeys({ key, formerKeys: [] }) }], (dialect, key) =>
      parse(rawQuery, dialect, key),
    )

/** A merchant for whom dispatch may send, with the settings of ACCOUNT in force. */
export const upsertMerchant = sql<{ merchantId: string; settingsHash: string; feeEstimate: bigint }>`
  insert into merchants (merchant_id, settings_hash, fee_estimate)
  values (${'merchantId'}, ${'settingsHash'}, ${'feeEstimate'})
  on conflict (merchant_id) do update set settings_hash = excluded.settings_hash`

/** Stores what is available to the merchant, as if the gateway had just reported it. */
export async function setBalance(db: Database, merchantId: string, available: bigint): Promise<void> {
  const [mark] = await db.run(balanceWatermark, { merchantId })
  assert.ok(mark)
  await db.run(saveBalance, { merchantId, available, ...mark })
}

export type StoredPayout = {
  payoutId: string
  orderNo: string
  state: string
  reason: string | null
  version: number
  attempt: number
  ready: boolean
}
const storedPayouts = sql<object, StoredPayout>`
  select payout_id, order_no, state, reason, version, attempt, ready from payouts order by payout_id`
export const payoutsOf = (ledger: Ledger): Promise<StoredPayout[]> => ledger.db.run(storedPayouts, {})

/** The fields that identify an attempt of acme's, of ₹100. */
export async function attemptOf(ledger: Ledger, payoutId: string, attempt = 1) {
  const key = { merchantId: 'acme', payoutId, attempt }
  const [made] = await ledger.db.run(attemptsMade, { answered: [key] })
  if (!made) throw new Error(`${payoutId} has no attempt ${attempt}`)
  const { owner, leaseUntil } = made
  return { ...key, owner, leaseUntil, amount: paise(10_000n), keptFee: paise(500n) }
}

/** The ledger as seen inside this transaction. */
export const within = (ledger: Ledger, tx: Transaction): Ledger => ({
  ...ledger,
  db: { ...ledger.db, transaction: (_name, work) => work(tx) },
})

const waiters = sql<object, { count: bigint }>`
  select count(*) as count from pg_locks
  where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())`
/** Whether exactly one transaction waits for another's turn to end. */
export const oneWaits = async ({ db }: Ledger): Promise<boolean> =>
  (await db.run(waiters, {}))[0]?.count === 1n

const storedAnomalies = sql<object, { kind: string }>`select kind from anomalies order by at, kind`
export const anomaliesOf = async (ledger: Ledger): Promise<string[]> =>
  (await ledger.db.run(storedAnomalies, {})).map(({ kind }) => kind)

const brokenHistories = sql<object, { payoutId: string }>`
  select p.payout_id from payouts p
  where p.version <> (select count(*) from history h
                      where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id and h.version is not null)
     or p.version <> (select max(h.version) from history h
                      where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id)`
/** Payouts whose versions have a gap or a repeat: there must be none, ever. */
export const brokenVersions = async (ledger: Ledger): Promise<string[]> =>
  (await ledger.db.run(brokenHistories, {})).map(({ payoutId }) => payoutId)
