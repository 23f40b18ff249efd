import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { DemoSettings } from '../../devkit/local/demo/settings.ts'
import type { Stack } from '../../devkit/local/servers/stack.ts'
import { check, type Discrepancy, discrepancy, needlessReviews } from '../../devkit/oracle/check.ts'
import { type LedgerRecord, readLedgerRecords } from '../../devkit/oracle/ledger-records.ts'
import { outcomesOf, payeeOf, type RequestedPayout, whose } from '../../devkit/oracle/outcome.ts'
import type {
  PublishedAnomaly,
  PublishedRecords,
  PublishedResult,
} from '../../devkit/oracle/published-messages.ts'
import { untilSettled } from '../../devkit/oracle/settled.ts'
import { TopicRecorder } from '../../devkit/oracle/topic-recorder.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../devkit/sandbox/sandbox.ts'
import { type Config, readConfig } from '../../src/config/config.ts'
import { command } from '../../src/domain/commands/command.fixture.ts'
import type { PayoutCommand } from '../../src/domain/commands/command.ts'
import { payoutKey } from '../../src/domain/identifiers.ts'
import { paise } from '../../src/domain/money.ts'
import { migrateAll } from '../../src/ledger/tables/migrate-all.ts'
import { schemaSubjects, topicNames } from '../../src/messages/topics.ts'
import { createPublisher, type Publisher } from '../../src/platform/kafka/producer.ts'
import type { Logger } from '../../src/platform/log.ts'
import { connectDatabase, type Database, withSession } from '../../src/platform/postgres/postgres.ts'
import { openCodec } from '../../src/platform/registry/codec.ts'
import { connectRegistry } from '../../src/platform/registry/registry.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import type { Crash } from '../crash.ts'
import { Gateways } from './gateways.ts'
import {
  type EachMerchant,
  firstMerchants,
  openAccount,
  type WorldMerchant,
  withOtherAccount,
  writeMerchants,
} from './merchants.ts'
import { checkPayins, payinsAt } from './payin-books.ts'
import { freePorts, Proc } from './proc.ts'

/**
 * Beginnings of account numbers (devkit/sandbox/README.md, "Magic accounts"): most of what a gateway can do to an
 * apply and to a callback.
 */
export const MIX = {
  usual: '5010',
  fails: '9999000001',
  'never called back': '9999000002',
  'called back twice': '9999000003',
  'called back before the answer': '9999000004',
  'taken, never answered': '9999000005',
  'not taken, hangs once': '9999000006',
  'not taken, HTTP 500 once': '9999000007',
  'taken, HTTP 500': '9999000008',
  'taken, badly signed': '9999000009',
  'too fast once': '999900001101',
  'forged callback first': '9999000013',
  'taken, reset': '9999000015',
} as const

/** Enough of each to be used again and again. */
const ACCOUNTS = Object.values(MIX)

/**
 * Everything at a gateway of this world happens within seconds. The gateway pays one number as often as asked, and
 * payoutd has no promise that it does not: only a person may send a confirmed absent order again.
 */
export const QUICK = {
  extends: 'sandbox',
  duplicateApply: 'unknown',
  absence: { graceMs: 4500, confirmations: 2 },
  queryAfterMs: [700, 1000, 2000],
  leaseMs: 4000,
  sendTimeoutMs: { connect: 300, headers: 800, body: 100 },
}

/** A gateway that refuses a second apply under one number, and a payoutd whose dialect promises that. */
export const REFUSING = {
  sandbox: { dialect: { duplicateApply: 'refused' as const } },
  dialect: { duplicateApply: 'refused', absence: { graceMs: 1000, confirmations: 2 } },
}

/** The servers of worlds; a section may kill some of them. */
export type Servers = Pick<Stack, 'databaseUrl' | 'kafkaBrokers' | 'schemaRegistryUrl' | 'kill' | 'restart'>

export type WorldOptions = {
  name: string
  stack: Servers
  dir: string
  log: Logger
  settings?: DemoSettings
  /** Further settings of every merchant of the world. */
  eachMerchant?: EachMerchant
  dialect?: object
  sandbox?: Partial<SandboxOptions>
  /** How processes reach the servers, if not at the servers' own addresses. */
  through?: DemoSettings
  /**
   * What may be in review at the end. `absent` (default): orders that the gateway does not have. `any`: the story
   * is about a person's decisions.
   */
  review?: 'absent' | 'any'
}

export type Verdict = {
  payouts: number
  paid: number
  /** In review at the end: a person decides. */
  inReview: number
  discrepancies: Discrepancy[]
  /** Every published anomaly, repeats included. */
  anomalies: readonly PublishedAnomaly[]
  /** Whether the gateway pays one number as often as asked. */
  paysTwice: boolean
}

/** Two merchants at a gateway, with their own database and topics: nothing else sees what happens here. */
export class World {
  readonly dir: string
  readonly settings: DemoSettings
  readonly config: Config
  readonly sandbox: Sandbox
  gateway: Gateways
  /** The merchants that request payouts, in turns, and that the verdict covers. */
  merchants: readonly WorldMerchant[]
  readonly db: Database
  readonly asked: RequestedPayout[] = []
  readonly procs: Proc[] = []
  readonly #publisher: Publisher
  readonly #encode: (command: PayoutCommand) => Buffer
  readonly #encodeCancel: (cancel: object) => Buffer
  readonly #log: Logger
  readonly #review: 'absent' | 'any'
  readonly #paysTwice: boolean
  readonly #endings = new Map<string, string>()
  readonly #twoEnds = new Set<string>()
  #payins: string[] = []
  #witness: TopicRecorder | undefined
  #started = 0

  private constructor(
    parts: Pick<World, 'dir' | 'settings' | 'config' | 'sandbox' | 'db' | 'merchants'> & {
      publisher: Publisher
      encode: (command: PayoutCommand) => Buffer
      encodeCancel: (cancel: object) => Buffer
      log: Logger
      review: 'absent' | 'any'
      paysTwice: boolean
    },
  ) {
    this.dir = parts.dir
    this.settings = parts.settings
    this.config = parts.config
    this.sandbox = parts.sandbox
    this.db = parts.db
    this.merchants = parts.merchants
    this.gateway = new Gateways(parts.sandbox.url, parts.merchants)
    this.#publisher = parts.publisher
    this.#encode = parts.encode
    this.#encodeCancel = parts.encodeCancel
    this.#log = parts.log
    this.#review = parts.review
    this.#paysTwice = parts.paysTwice
  }

  static async open({ name, stack, dir: base, log, ...options }: WorldOptions): Promise<World> {
    const dir = path.join(base, name)
    mkdirSync(dir, { recursive: true })
    const dialect = path.join(dir, 'dialect.json')
    writeFileSync(dialect, JSON.stringify({ ...QUICK, ...options.dialect }))
    const merchants = firstMerchants()
    const sandboxDialect = options.sandbox?.dialect ?? { duplicateApply: 'unknown' as const }
    const sandbox = await startSandbox({
      state: path.join(dir, 'sandbox.sqlite'),
      merchants: merchants.map(({ mchId, key }) => ({ mchId, key })),
      settleMs: 100,
      latencyMs: 20,
      // Payin fees would mix with the fees of payouts.
      payinFeeFlat: 0n,
      payinFeeBps: 0n,
      callbackRetries: [1, 1, 1, 2, 2, 5],
      ...options.sandbox,
      dialect: sandboxDialect,
    })
    const database = `prove_${name.toLowerCase().replace(/\W/g, '_')}_${randomBytes(3).toString('hex')}`
    await withSession(stack.databaseUrl, (session) => session.query(`create database ${database}`))
    const databaseUrl = new URL(stack.databaseUrl)
    databaseUrl.pathname = `/${database}`
    const [publicPort] = await freePorts(1)
    const own: DemoSettings = {
      DATABASE_URL: databaseUrl.href,
      KAFKA_BROKERS: stack.kafkaBrokers.join(','),
      SCHEMA_REGISTRY_URL: stack.schemaRegistryUrl,
      TOPIC_PREFIX: `${database}.`,
      TOPIC_PARTITIONS: '2',
      ENCRYPTION_KEYS: `1:${randomBytes(32).toString('base64')}`,
      FINGERPRINT_KEY: randomBytes(32).toString('base64'),
      GATEWAY_BASE_URL: sandbox.url,
      GATEWAY_DIALECT: dialect,
      ...writeMerchants(dir, merchants, {
        baseUrl: options.through?.GATEWAY_BASE_URL ?? sandbox.url,
        dialect,
        ...options.eachMerchant,
      }),
      PUBLIC_PORT: String(publicPort),
      INTERNAL_PORT: '0',
      LOG_LEVEL: 'warn',
      ...options.settings,
    }
    const config = readConfig(own)
    await migrateAll(config, log)
    const topics = topicNames(config.topicPrefix)
    const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
    const encode = codec.encoder(topics.commands, 'in.payoutd.PayoutRequested')
    const encodeCancel = codec.encoder(topics.commands, 'in.payoutd.PayoutCancelRequested')
    const publisher = createPublisher('test', config.kafka, log)
    const db = connectDatabase({ url: own.DATABASE_URL as string, connections: 2, applicationName: 'prover' })
    const settings = { ...own, ...options.through }
    return new World({
      ...{ dir, settings, config, sandbox, merchants, db, publisher, encode, encodeCancel, log },
      review: options.review ?? 'absent',
      paysTwice: sandboxDialect.duplicateApply === 'unknown',
    })
  }

  /**
   * Publishes commands for this many new payouts, each kind of account and each merchant in turn. Returns their
   * payoutIds.
   */
  async ask(
    count: number,
    accounts: readonly string[] = ACCOUNTS,
    merchants: readonly Pick<WorldMerchant, 'merchantId'>[] = this.merchants,
  ): Promise<string[]> {
    const commands = Array.from({ length: count }, (_, i) => {
      const number = this.asked.length + i + 1
      const account = accounts[i % accounts.length]
      const { merchantId } = merchants[number % merchants.length] as WorldMerchant
      return { ...commandOf(number, `${account}${1_000_000 + number}`), merchantId }
    })
    this.expect(commands)
    await this.publish(commands)
    return commands.map(({ payoutId }) => payoutId)
  }

  /** The verdict covers these payouts too, however they are requested. */
  expect(commands: readonly PayoutCommand[]): void {
    const asked = commands.map(
      (each, i): RequestedPayout => ({ ...each, payee: payeeOf(each), row: this.asked.length + i + 1 }),
    )
    this.asked.push(...asked)
  }

  /** These payouts, and no others of their merchants with the same name, must end in exactly this state. */
  mustEndAs(state: string, payoutIds: readonly string[]): void {
    for (const payoutId of payoutIds) this.#endings.set(payoutId, state)
  }

  /**
   * These payouts come to one end before the ledger is set back, and to another after it. If both ends were
   * published, the one under the highest version counts.
   */
  mayEndTwice(payoutIds: readonly string[]): void {
    for (const payoutId of payoutIds) this.#twoEnds.add(payoutId)
  }

  /** The verdict covers this payin as well. */
  expectPayin(payinId: string): void {
    this.#payins.push(payinId)
  }

  /** Retries until Kafka has them: a producer that wants people paid tries again, and so may send twice. */
  async publish(commands: readonly PayoutCommand[]): Promise<void> {
    const { commands: topic } = topicNames(this.config.topicPrefix)
    const records = commands.map((each) => ({
      topic,
      key: payoutKey(each),
      value: this.#encode(each),
    }))
    await eventually('Kafka to take commands', () => this.#isPublished(records))
  }

  /** Withdraws payouts, requested or not. */
  async cancel(payouts: readonly Pick<PayoutCommand, 'merchantId' | 'payoutId'>[]): Promise<void> {
    const { commands: topic } = topicNames(this.config.topicPrefix)
    const records = payouts.map(({ merchantId, payoutId }) => ({
      topic,
      key: payoutKey({ merchantId, payoutId }),
      value: this.#encodeCancel({ merchantId, payoutId, reason: 'left the company', requestedBy: 'prover' }),
    }))
    await eventually('Kafka to take cancels', () => this.#isPublished(records))
  }

  #isPublished(records: Parameters<Publisher['publish']>[0]): Promise<boolean> {
    return this.#publisher.publish(records).then(
      () => true,
      () => false,
    )
  }

  /** Publishes bytes that are not a command. */
  async publishBytes(value: Buffer): Promise<void> {
    const { commands: topic } = topicNames(this.config.topicPrefix)
    await this.#publisher.publish([{ topic, key: 'nobody', value }])
  }

  /**
   * Starts one payoutd process. Its consumer group is new, unless a `group` is named, so that it need not wait until Kafka gives up
   * its killed predecessor: Postgres has its reading position.
   */
  async start(
    options: { roles?: string; group?: string; crash?: Crash; without?: string; clockOffMs?: number } = {},
  ): Promise<Proc> {
    const { roles = 'intake,dispatch,outcomes,relay', crash, without, clockOffMs } = options
    const [internalPort] = await freePorts(1)
    const number = ++this.#started
    const proc = Proc.spawn({
      name: `payoutd-${number}`,
      command: without ? [without, roles] : ['serve', '--roles', roles],
      ...(without && { program: 'prove/without/serve-without.ts' }),
      settings: {
        ...this.settings,
        KAFKA_GROUP: `${options.group ?? number}`,
        INTERNAL_PORT: String(internalPort),
        ...(clockOffMs !== undefined && { PROVE_CLOCK_OFF_MS: String(clockOffMs) }),
      },
      dir: this.dir,
      crash,
    })
    this.procs.push(proc)
    return proc
  }

  /** Runs one command of payoutd to its end. `without`: the safeguard that `recover` lacks. */
  async command(
    args: readonly string[],
    crash?: Crash,
    without?: string,
  ): Promise<{ exit: NodeJS.Signals | number; proc: Proc }> {
    const name = `command-${++this.#started}`
    const proc = Proc.spawn({
      ...{ name, settings: this.settings, dir: this.dir, crash },
      command: without ? [without, ...args.slice(1)] : args,
      ...(without && { program: 'prove/without/recover-without.ts' }),
    })
    this.procs.push(proc)
    return { exit: await proc.gone, proc }
  }

  /** Waits until every payout has ended or is in review, and compares the result with the gateway's books. */
  async verdict(options: { signal?: AbortSignal; patienceMs?: number } = {}): Promise<Verdict> {
    this.#witness ??= await TopicRecorder.start(this.config, this.#log)
    const settling = {
      asked: this.asked,
      recorder: this.#witness,
      gateway: this.gateway,
      db: this.db,
      clock: systemClock,
      signal: new AbortController().signal,
      onProgress: () => undefined,
      ...options,
    }
    let stalled = ''
    await untilSettled(settling).catch((error: Error) => {
      options.signal?.throwIfAborted()
      stalled = error.message
    })
    const kept = await this.kept()
    const { told } = this.#witness
    const outcomes = outcomesOf(this.asked, this.#withLastEnds(told), kept, await this.gateway.orders())
    const discrepancies = [
      ...check(outcomes, await this.gateway.books()),
      ...(this.#review === 'absent' ? needlessReviews(outcomes) : []),
      ...checkPayins(this.#payins, told.payins, await payinsAt(this.sandbox, this.merchants)),
      ...kept.flatMap(({ payoutId, state }) => {
        const wanted = this.#endings.get(payoutId) ?? state
        return state === wanted
          ? []
          : [discrepancy('expectation', payoutId, `is ${state} instead of ${wanted}`)]
      }),
    ]
    if (stalled !== '' && discrepancies.length === 0) throw new Error(stalled)
    return {
      payouts: this.asked.length,
      paid: outcomes.payouts.filter(({ ends }) => ends[0]?.status === 'PAID').length,
      inReview: kept.filter(({ state }) => state === 'review').length,
      discrepancies,
      anomalies: this.#witness.told.anomalies,
      paysTwice: this.#paysTwice,
    }
  }

  #withLastEnds(told: PublishedRecords): PublishedRecords {
    const isToldOf = ({ payoutId }: PublishedResult) =>
      this.#twoEnds.has(payoutId) &&
      told.anomalies.some((each) => each.kind === 'end-published' && each.payoutId === payoutId)
    const isOvertaken = (result: PublishedResult) =>
      isToldOf(result) &&
      told.results.some((other) => whose(other) === whose(result) && other.version > result.version)
    return { ...told, results: told.results.filter((result) => !isOvertaken(result)) }
  }

  /** What payoutd's ledger contains now. */
  async kept(): Promise<LedgerRecord[]> {
    return (
      await Promise.all(this.merchants.map(({ merchantId }) => readLedgerRecords(this.db, merchantId)))
    ).flat()
  }

  /** Registers merchants at the sandbox, and at every payoutd of this world that starts from now on. */
  async addMerchants(further: readonly WorldMerchant[]): Promise<void> {
    for (const each of further) await openAccount(this.sandbox.url, each)
    this.#writeMerchants([...this.merchants, ...further])
  }

  /**
   * Gives a merchant another account at the gateway, for every payoutd that starts from now on; it keeps the former
   * one.
   */
  async changeAccount(merchantId: string): Promise<void> {
    this.merchants = this.merchants.map((each) =>
      each.merchantId === merchantId ? withOtherAccount(each) : each,
    )
    for (const each of this.merchants) if (each.former) await openAccount(this.sandbox.url, each)
    this.gateway = new Gateways(this.sandbox.url, this.merchants)
    this.#writeMerchants(this.merchants)
  }

  /** Every payoutd that starts from now on finds the gateway at this address. */
  reachGatewayAt(url: string): void {
    this.settings.GATEWAY_BASE_URL = url
    this.#writeMerchants(this.merchants)
  }

  /** Every payoutd that starts from now on reads the gateway with this dialect. */
  speak(dialect: object): void {
    writeFileSync(this.settings.GATEWAY_DIALECT as string, JSON.stringify({ ...QUICK, ...dialect }))
  }

  /** Every payoutd that starts from now on knows only these merchants. */
  know(merchants: readonly WorldMerchant[]): void {
    this.#writeMerchants(merchants)
  }

  /** Every payoutd that starts from now on gives the merchants this maximum. */
  lowerMaximum(maxAmountRupees: number): void {
    this.#writeMerchants(this.merchants, { maxAmountRupees })
  }

  #writeMerchants(all: readonly WorldMerchant[], each: EachMerchant = {}): void {
    const { GATEWAY_BASE_URL: baseUrl, GATEWAY_DIALECT: dialect } = this.settings
    Object.assign(this.settings, writeMerchants(this.dir, all, { baseUrl, dialect, ...each }))
  }

  /** Goes on with other merchants (`furtherMerchants`), after a verdict on the former ones. */
  turnTo(merchants: readonly WorldMerchant[]): void {
    this.merchants = merchants
    this.gateway = new Gateways(this.sandbox.url, merchants)
    this.asked.length = 0
    this.#witness?.forget()
  }

  /** Every crash point that any process of this world has passed. */
  reached(): Set<string> {
    return new Set(this.procs.flatMap((proc) => proc.reached()))
  }

  async killAll(): Promise<void> {
    await Promise.all(this.procs.map((proc) => (proc.isGone ? undefined : proc.kill())))
  }

  async close(): Promise<void> {
    await this.killAll()
    await this.#witness?.stop()
    await this.#publisher.close()
    await this.db.close()
    await this.sandbox.stop()
  }
}

export const commandOf = (number: number, accountNo: string): PayoutCommand =>
  command(`p${number}`, {
    rowNumber: number,
    amount: paise(100n * BigInt(1 + (number % 50_000))),
    accountNo,
  })
