import type { Config } from '../config/config.ts'
import type { Merchant } from '../config/merchants.ts'
import type { Timetable } from '../domain/payout/transition.ts'
import { type ConnectedAccount, type ConnectedAccounts, connectAccounts } from '../gateway/accounts.ts'
import { parsePayinCallback, readVouched } from '../gateway/callbacks/callback.ts'
import { accountIdsOf, accountOf } from '../gateway/dialect/account.ts'
import { longestSendMs, promisesOf } from '../gateway/dialect/dialect.ts'
import { PositiveControl } from '../gateway/positive-control.ts'
import { Dependencies } from '../http/dependencies.ts'
import { internalRoutes, startingRoutes } from '../http/internal-routes.ts'
import { payinRoutes } from '../http/routes.ts'
import { KeptCallbacks } from '../ledger/callbacks/kept-callbacks.ts'
import { sweepKeptCallbacks } from '../ledger/callbacks/sql/kept-callbacks.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { watchServer } from '../ledger/server-watch.ts'
import { CANCELS_KEPT_DAYS, sweepCancels } from '../ledger/sql/cancels.ts'
import { demandSchema } from '../ledger/tables/schema.ts'
import { type Encode, SHARDS } from '../messages/messages.ts'
import { isCompacted, schemaSubjects, type Topics, topicNames } from '../messages/topics.ts'
import { earlierLedger } from '../operators/earlier-ledger.ts'
import { requireInForce } from '../operators/gateway-settings.ts'
import { type Keys, proveKeys } from '../operators/key-proofs.ts'
import type { CollectDeps, Collector } from '../payins/collect.ts'
import { PayinDoor, payinCallbackPath } from '../payins/door.ts'
import { type PayinAsker, PayinPoller } from '../payins/poller.ts'
import { addressesOf, inOneLine, troubleOf } from '../platform/dependency-trouble.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { createHttpServer, type HttpServer, listen } from '../platform/http.ts'
import { type Ids, systemIds } from '../platform/ids.ts'
import { connectAdmin, type TopicSpec } from '../platform/kafka/admin.ts'
import type { KafkaConnection } from '../platform/kafka/connection.ts'
import { consumeBatches } from '../platform/kafka/consumer.ts'
import { kafkaPing } from '../platform/kafka/ping.ts'
import { Publishers } from '../platform/kafka/producer.ts'
import { createLogger, type Logger, silentLogger } from '../platform/log.ts'
import { Metrics } from '../platform/metrics.ts'
import { PAGE } from '../platform/postgres/pages.ts'
import { connectDatabase, signing, sql } from '../platform/postgres/postgres.ts'
import { Rounds } from '../platform/postgres/rounds.ts'
import { type Codec, openCodec } from '../platform/registry/codec.ts'
import { connectRegistry } from '../platform/registry/registry.ts'
import { type Clock, systemClock } from '../platform/running/clock.ts'
import { Lifecycle, pause } from '../platform/running/lifecycle.ts'
import { ledgerMetrics } from '../queries/ledger-metrics.ts'
import { openByAccount } from '../queries/open-by-account.ts'
import { Dispatch, type Sender } from '../stages/dispatch/dispatch.ts'
import { KeyTrial } from '../stages/dispatch/sealed.ts'
import { begin } from '../stages/intake/begin.ts'
import { takeIn } from '../stages/intake/intake.ts'
import { takeInWaiting, type WaitingDeps } from '../stages/intake/waiting.ts'
import { CallbackDoor, callbackPath } from '../stages/outcomes/door.ts'
import { LagReport } from '../stages/outcomes/lag.ts'
import { type Asker, Poller } from '../stages/outcomes/poller.ts'
import { forgetLag } from '../stages/outcomes/sql/lag.ts'
import { Relay } from '../stages/relay/relay.ts'
import { UNREACHABLE_TODO, unreachableTexts } from '../views/gateway-settings-text.ts'
import { SAFEGUARDS, type Safeguards } from './safeguards.ts'

export const ROLES = ['intake', 'dispatch', 'settlement', 'relay'] as const
export type Role = (typeof ROLES)[number]

export interface Payoutd {
  /** Where callbacks are received; null without the settlement role. */
  readonly publicUrl: string | null
  /** Health and metrics. */
  readonly internalUrl: string
  /** Finishes what is in hand and stops, within 25 s. */
  stop(): Promise<void>
  /** Resolves with what stands still once something has not got on with its work for minutes: the process should end. */
  readonly standstill: Promise<Standstill>
  /** The parts that `stop` could not finish; empty: all of it ended. */
  readonly unfinished: readonly string[]
  /** For who cannot wait any longer: tells in the log which payouts are left to their leases. */
  tellAbandoned(): void
}

/** A loop, and for how long it has given no sign of life. */
export type Standstill = { loop: string; ms: number }

/** What all roles of one process share. */
type Shared = {
  config: Config
  safeguards: Safeguards
  ledger: Ledger
  codec: Codec
  /** By merchant, as the next. */
  gateways: ReadonlyMap<string, ConnectedAccounts>
  tables: ReadonlyMap<string, Timetable>
  metrics: Metrics
  lifecycle: Lifecycle
  clock: Clock
  /** Names this process in leases. */
  processId: string
  log: Logger
}

/** Of who never stops a start. */
const UNSTOPPED = new AbortController().signal

/**
 * Starts one payoutd process with the given roles and resolves when all of them work. Rejects, with
 * everything stopped again, when something it needs is missing or refuses (a schema that is not
 * registered, topics that are missing, a database without tables, other keys than those in use before, a port that is taken),
 * and with the reason of `stopping` once that is aborted.
 */
export async function startPayoutd(
  config: Config,
  roles: ReadonlySet<Role>,
  log: Logger,
  safeguards: Safeguards = SAFEGUARDS,
  stopping: AbortSignal = UNSTOPPED,
): Promise<Payoutd> {
  const lifecycle = new Lifecycle(log)
  try {
    const starting = await serveWhileStarting(config, lifecycle)
    if (roles.has('intake') || roles.has('relay')) await requireTopics(config, log)
    const shared = await share(config, safeguards, lifecycle, log, stopping)
    // In the order of stopping, backwards: what takes work in stops first, the callback doors last.
    const standstill = watchHeartbeats(lifecycle)
    const publicUrl = roles.has('settlement') ? await settle(shared) : null
    const notifyAt = config.publicUrl ?? publicUrl ?? urlOf(config.publicAt)
    if (roles.has('relay')) relay(shared)
    let isUp = false
    await starting.close()
    const internalUrl = await serveInternally(shared, notifyAt, () => isUp)
    const applies = roles.has('dispatch') ? await dispatch(shared, notifyAt) : null
    stopping.throwIfAborted()
    if (roles.has('intake')) intake(shared)
    isUp = true
    log.info(
      { roles: [...roles], internalUrl, publicUrl, merchants: [...config.merchants.keys()] },
      'payoutd is up',
    )
    return {
      publicUrl,
      internalUrl,
      standstill,
      stop: () => lifecycle.stop(),
      unfinished: lifecycle.unfinished,
      tellAbandoned: () => applies?.tellAbandoned(),
    }
  } catch (error) {
    await lifecycle.stop()
    throw error
  }
}

/** Longer than any turn of a loop takes: each of its statements, requests and publishes is given up far earlier. */
const STANDSTILL_MS = 120_000

function watchHeartbeats(lifecycle: Lifecycle): Promise<Standstill> {
  return new Promise((resolve) => {
    const watch = setInterval(() => {
      for (const [loop, ms] of lifecycle.heartbeats.silences()) if (ms > STANDSTILL_MS) resolve({ loop, ms })
    }, 1_000)
    lifecycle.own('watch over loops', async () => clearInterval(watch))
  })
}

const urlOf = ({ host, port }: { host: string; port: number }) => `http://${host}:${port}`

const KAFKA_WITHIN_MS = 5_000

/**
 * Without its topics nothing works though everything says so, and a topic that is compacted forgets commands: rejects, naming it. A Kafka that
 * does not answer comes back, and stops no start: callbacks and the gateway do not wait for it.
 */
async function requireTopics({ kafka, topicPrefix }: Config, log: Logger): Promise<void> {
  const topics = topicNames(topicPrefix)
  const names = Object.values(topics)
  const over = new AbortController()
  const found = await Promise.race([
    topicsOf(kafka, names).catch((error: unknown) => {
      log.warn({ err: error }, 'Kafka cannot be asked for its topics: going on without')
    }),
    pause(KAFKA_WITHIN_MS, over.signal),
  ])
  over.abort()
  if (!found) return
  const missing = names.filter((name) => !found.some((topic) => topic.name === name))
  if (missing.length > 0)
    throw new ExpectedFailure(
      `topics are missing on Kafka at ${kafka.brokers.join(', ')}: ${missing.join(', ')}: run payoutd migrate, which makes them`,
    )
  if (found.some((topic) => topic.name === topics.commands && isCompacted(topic)))
    throw new ExpectedFailure(
      `Kafka compacts ${topics.commands}: it drops commands that nobody has read, and tells nobody. ` +
        'Set its cleanup.policy to delete (kafka-configs), and compare what upstream sent with payoutd payout list',
    )
}

async function topicsOf(connection: KafkaConnection, names: readonly string[]): Promise<TopicSpec[]> {
  const admin = await connectAdmin(connection, silentLogger)
  try {
    return await admin.describeTopics(names)
  } finally {
    await admin.close()
  }
}

/** Opens the ledger. Rejects, in words, when the registry lacks a schema of this version. */
export async function openLedger(
  config: Config,
  lifecycle: Lifecycle,
  ids: Ids,
  {
    connect = connectDatabase,
    log = createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 }),
  }: { connect?: typeof connectDatabase; log?: Logger } = {},
): Promise<{ ledger: Ledger; codec: Codec }> {
  const topics = topicNames(config.topicPrefix)
  const db = connect({
    url: config.databaseUrl,
    connections: config.databaseConnections,
    applicationName: 'payoutd',
    onConnect: watchServer([...config.merchants.keys()], log),
  })
  lifecycle.own('database', () => db.close())
  await demandSchema(db)
  const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
  return { codec, ledger: { db, topics, ids, encode: encoderOf(codec, topics) } }
}

/** Encodes what the ledger tells, each record for its topic. */
export function encoderOf(codec: Codec, topics: Topics): Encode {
  const encoders = {
    PayoutEvent: codec.encoder(topics.events, 'in.payoutd.PayoutEvent'),
    PayoutResult: codec.encoder(topics.results, 'in.payoutd.PayoutResult'),
    PayoutReversed: codec.encoder(topics.results, 'in.payoutd.PayoutReversed'),
    PayoutAnomaly: codec.encoder(topics.anomalies, 'in.payoutd.PayoutAnomaly'),
    PayinResult: codec.encoder(topics.payinResults, 'in.payoutd.PayinResult'),
  }
  return (type, record) => encoders[type](record)
}

/** What waits for a lock for longer is tried again later, without a connection meanwhile. */
const LOCK_TIMEOUT_MS = 1_000

const keysOf = ({ sealing, fingerprintKey }: Config): Keys => ({ sealing, fingerprint: fingerprintKey })

async function share(
  config: Config,
  safeguards: Safeguards,
  lifecycle: Lifecycle,
  log: Logger,
  stopping: AbortSignal,
): Promise<Shared> {
  stopping.throwIfAborted()
  const clock = systemClock
  const { ledger, codec } = await openLedger(config, lifecycle, systemIds, {
    connect: (options) => safeguards.connectDatabase({ ...options, lockTimeoutMs: LOCK_TIMEOUT_MS }),
    log,
  })
  await proveKeys(ledger.db, keysOf(config))
  const gateways = await connectGateways(config, ledger, lifecycle, clock, log, stopping)
  lifecycle.loop('housekeeping', async (sign) => {
    const db = signing(sign, ledger.db)
    const [kept] = await db.write('keep history', keepHistory, { months: config.historyMonths })
    await db.write('forget lag', forgetLag, { limit: PAGE })
    const cancels = { days: CANCELS_KEPT_DAYS, limit: PAGE }
    const callbacks = { days: KEPT_CALLBACK_DAYS, limit: PAGE }
    const [cancelled] = await db.write('sweep early cancels', sweepCancels, cancels)
    const [dropped] = await db.write('sweep kept callbacks', sweepKeptCallbacks, callbacks)
    if (cancelled?.swept || dropped?.swept) return 0
    return kept?.left ? HOUSEKEEPING_SOON_MS : HOUSEKEEPING_EVERY_MS
  })
  const known = accountIdsOf(config.merchants)
  lifecycle.loop('open accounts', async (sign) => {
    for (const what of unreachableTexts(await openByAccount(signing(sign, ledger.db)), known))
      log.warn({ todo: UNREACHABLE_TODO }, what)
    return HOUSEKEEPING_EVERY_MS
  })
  const tables = new Map([...gateways].map(([merchantId, [{ table }]]) => [merchantId, table]))
  const processId = systemIds.uuid()
  return {
    config,
    safeguards,
    ledger,
    codec,
    gateways,
    tables,
    metrics: new Metrics(),
    lifecycle,
    clock,
    processId,
    log,
  }
}

/** The gateway accounts of every merchant. Throws where other settings are in force than these. */
async function connectGateways(
  { merchants, kafka }: Config,
  { db, topics }: Ledger,
  lifecycle: Lifecycle,
  clock: Clock,
  log: Logger,
  stopping: AbortSignal,
): Promise<ReadonlyMap<string, ConnectedAccounts>> {
  const earlier = earlierLedger(kafka, topics)
  for (const merchant of merchants.values()) {
    stopping.throwIfAborted()
    const { merchantId } = merchant
    const reason = await requireInForce(db, { ...merchant, account: accountOf(merchant) }, earlier)
    if (reason !== null) log.error({ merchantId, reason }, NEWCOMER_FENCED)
  }
  const gateways = new Map(
    [...merchants].map(([merchantId, merchant]) => [
      merchantId,
      connectAccounts(merchant, { applies: merchant.maxInFlight, clock }),
    ]),
  )
  lifecycle.own('gateway clients', async () => {
    await Promise.all([...gateways.values()].flat().map(({ client }) => client.close()))
  })
  return gateways
}

const NEWCOMER_FENCED =
  'the merchant is new to this ledger, and may not be to the gateway: it is fenced, and nothing of it is sent. Make sure ' +
  'that DATABASE_URL and TOPIC_PREFIX are the right ones, and run payoutd recover; if nothing was ever sent for it, ' +
  'payoutd recover --nothing-lost'

const HOUSEKEEPING_EVERY_MS = 3_600_000
/** What others keep locked is tried again before long. */
const HOUSEKEEPING_SOON_MS = 60_000
/** How long a callback waits for its merchant to be in the settings again. */
const KEPT_CALLBACK_DAYS = 30
/** `left`: something could not be locked, or is still to be dropped. */
const keepHistory = sql<{ months: number | null }, { left: boolean }>`
  select keep_history(${'months'}::int) as left`

/** Health on the internal port: a supervisor must not end a process because its start waits for something. */
async function serveWhileStarting({ internalAt }: Config, lifecycle: Lifecycle): Promise<HttpServer> {
  const server = createHttpServer()
  startingRoutes(server)
  await listen(server, internalAt)
  lifecycle.own('internal server of the start', () => server.close())
  return server
}

const answers = sql<object, { one: number }>`select 1 as one`

async function serveInternally(shared: Shared, notifyAt: string, isUp: () => boolean): Promise<string> {
  const { config, metrics, ledger, lifecycle, gateways, clock, log } = shared
  const server = createHttpServer()
  ledgerMetrics(metrics, ledger.db)
  const kafka = kafkaPing(config.kafka, silentLogger)
  lifecycle.own('Kafka ping', () => kafka.close())
  const dependencies = new Dependencies({
    checks: { Postgres: () => ledger.db.run(answers, {}), Kafka: () => kafka.ping() },
    words: (error) => {
      const trouble = troubleOf(error, addressesOf(config))
      return trouble ? inOneLine(trouble) : String(error)
    },
    clock,
    log,
  })
  lifecycle.loop('dependencies', () => dependencies.turn())
  internalRoutes(server, metrics, {
    dependencies: () => dependencies.states(),
    silences: () => lifecycle.heartbeats.silences(),
    failures: () => lifecycle.heartbeats.failures(),
    isUp,
  })
  payinRoutes(server, collecting({ config, ledger, gateways, clock, notifyAt, log }))
  const url = await listen(server, config.internalAt)
  lifecycle.own('internal server', () => server.close())
  return url
}

/** What asks for payins, wherever it is asked to. The gateway calls back at `notifyAt`. */
function collecting({
  config,
  ledger,
  gateways,
  clock,
  notifyAt,
  log,
}: Pick<Shared, 'config' | 'ledger' | 'gateways' | 'clock' | 'log'> & { notifyAt: string }): CollectDeps {
  const collectors = [...gateways].map(([merchantId, accounts]): [string, Collector] => {
    const [{ accountId, dialect, table, client }] = accounts
    const { deadlineMs } = config.merchants.get(merchantId) as Merchant
    const notifyUrl = notifyAt + payinCallbackPath(merchantId)
    const collector: Collector = {
      accountId,
      leaseMs: dialect.leaseMs,
      sendTimeoutMs: longestSendMs(dialect.sendTimeoutMs),
      expireMs: deadlineMs,
      table,
      create: (order, mayStillSend) => client.payinCreate({ ...order, notifyUrl }, { mayStillSend }),
      recover: new Map(accounts.map(({ accountId, client }) => [accountId, client.payinRecover])),
    }
    return [merchantId, collector]
  })
  return { ledger, collectors: new Map(collectors), fingerprintKey: config.fingerprintKey, clock, log }
}

/**
 * The same for a command that runs beside the processes. The ledger and the connections to the gateways are
 * the lifecycle's.
 */
export async function openCollecting(config: Config, lifecycle: Lifecycle): Promise<CollectDeps> {
  const { ledger } = await openLedger(config, lifecycle, systemIds)
  await proveKeys(ledger.db, keysOf(config))
  const clock = systemClock
  const gateways = await connectGateways(config, ledger, lifecycle, clock, silentLogger, lifecycle.signal)
  const notifyAt = config.publicUrl ?? urlOf(config.publicAt)
  return collecting({ config, ledger, gateways, clock, notifyAt, log: silentLogger })
}

/** The door faces strangers: whoever fills it keeps callbacks out, which queries make up for, and nothing else. */
const MOST_CALLBACK_CONNECTIONS = 500

async function settle(shared: Shared): Promise<string> {
  const { config, safeguards, ledger, tables, gateways, metrics, lifecycle, clock, processId, log } = shared
  const counted = metrics.counter('evidence_total', 'What callbacks and queries came to', [
    'source',
    'outcome',
  ])
  const settlement = { ledger, judge: safeguards.judge, tables, counted }
  const door = new CallbackDoor({
    ...settlement,
    readers: new Map(
      [...gateways].map(([merchantId, accounts]) => [
        merchantId,
        (rawQuery: string) =>
          readVouched(accounts, (dialect, key) => safeguards.readCallback(rawQuery, dialect, key)),
      ]),
    ),
    clock,
    log,
    kept: new KeptCallbacks({ db: ledger.db, sealing: config.sealing, kind: 'payout' }),
    answered: metrics.counter('callbacks_total', 'Callbacks by what they were answered', [
      'merchant',
      'answer',
    ]),
    took: metrics.seconds('callback_seconds', 'From the arrival of a callback to its commit', []),
  })
  const server = createHttpServer({ mostConnections: MOST_CALLBACK_CONNECTIONS })
  const turnedAway = metrics.counter(
    'callback_connections_turned_away_total',
    'Connections to the callback door beyond those that it takes at once',
    [],
  )
  server.server.on('drop', () => turnedAway.inc())
  door.routes(server)
  const payinDoor = settlePayins(shared, server)
  const url = await listen(server, config.publicAt)
  lifecycle.own('callback doors', async () => {
    await server.close()
    await Promise.all([door.drain(), payinDoor.drain()])
  })
  lifecycle.loop('kept callbacks', () => door.takeUpKept())
  lifecycle.loop('kept payin callbacks', () => payinDoor.takeUpKept())
  const lag = new LagReport({ door, db: ledger.db, processId, log })
  lifecycle.loop('callback lag', () => lag.turn())

  const poller = new Poller({
    ...settlement,
    askers: new Map(
      [...gateways].map(([merchantId, [current, ...former]]) => [
        merchantId,
        [askerOf(current), ...former.map(askerOf)],
      ]),
    ),
    control: safeguards.openControl(clock),
    log,
  })
  lifecycle.own('queries', () => poller.drain())
  lifecycle.loop('poller', () => poller.turn())
  lifecycle.loop('lost callbacks', (sign) => poller.askAboutLost(sign))
  return url
}

/** The payins' callback door, on the same port, and their poller. */
function settlePayins(shared: Shared, server: HttpServer): PayinDoor {
  const { config, ledger, gateways, metrics, lifecycle, clock, log } = shared
  const settlement = {
    ledger,
    terms: new Map(
      [...gateways].map(([merchantId, accounts]) => {
        const mchIds = new Map(accounts.map(({ accountId, mchId }) => [accountId, mchId]))
        return [merchantId, { mchIds, table: accounts[0].table }]
      }),
    ),
    counted: metrics.counter('payin_evidence_total', 'What callbacks and queries about payins came to', [
      'source',
      'outcome',
    ]),
    log,
  }
  const door = new PayinDoor({
    ...settlement,
    readers: new Map(
      [...gateways].map(([merchantId, accounts]) => [
        merchantId,
        (rawQuery: string) =>
          readVouched(accounts, (dialect, key) => parsePayinCallback(rawQuery, dialect, key)),
      ]),
    ),
    kept: new KeptCallbacks({ db: ledger.db, sealing: config.sealing, kind: 'payin' }),
    answered: metrics.counter('payin_callbacks_total', 'Payin callbacks by what they were answered', [
      'merchant',
      'answer',
    ]),
  })
  door.routes(server)
  const poller = new PayinPoller({
    ...settlement,
    askers: new Map(
      [...gateways].map(([merchantId, [current, ...former]]) => [
        merchantId,
        [payinAskerOf(current), ...former.map(payinAskerOf)],
      ]),
    ),
    control: new PositiveControl(clock),
  })
  lifecycle.own('payin queries', () => poller.drain())
  lifecycle.loop('payin poller', () => poller.turn())
  lifecycle.loop('lost payin callbacks', (sign) => poller.askAboutLost(sign))
  return door
}

const payinAskerOf = ({ accountId, settingsHash, table, dialect, client }: ConnectedAccount): PayinAsker => ({
  accountId,
  settingsHash,
  table,
  query: (mchOrderNo) => client.payinQuery({ mchOrderNo }, { executeNotify: false }),
  timeoutMs: longestSendMs(dialect.sendTimeoutMs),
})

export const askerOf = ({ accountId, settingsHash, table, dialect, client }: ConnectedAccount): Asker => ({
  accountId,
  settingsHash,
  table,
  query: (mchOrderNo) => client.query({ mchOrderNo }),
  timeoutMs: longestSendMs(dialect.sendTimeoutMs),
})

function relay({ config, safeguards, ledger, metrics, lifecycle, clock, processId, log }: Shared): void {
  const publishers = new Publishers(() => safeguards.createPublisher('relay', config.kafka, log))
  lifecycle.own('publishers', () => publishers.close())
  const relay = new Relay({
    db: ledger.db,
    publisherOf: (topic) => publishers.of(topic),
    owner: processId,
    shards: SHARDS,
    published: metrics.counter('published_total', 'Messages published', ['topic']),
    refused: metrics.counter('refused_total', 'Messages that Kafka refused', ['topic', 'reason']),
    heartbeats: lifecycle.heartbeats,
    log,
  })
  lifecycle.own('relay shards', () => relay.leave())
  lifecycle.loop('relay', () => relay.turn(clock.monotonic()))
}

async function dispatch(shared: Shared, publicUrl: string): Promise<Dispatch> {
  const { config, safeguards, ledger, gateways, tables, metrics, lifecycle, clock, processId, log } = shared
  const { claim, maySend, judge } = safeguards
  const senders = new Map<string, Sender>()
  for (const [merchantId, [current]] of gateways) {
    const merchant = config.merchants.get(merchantId) as Merchant
    senders.set(merchantId, senderOf(merchant, current, publicUrl + callbackPath(merchantId)))
  }
  const dispatch = new Dispatch({
    claim,
    maySend,
    judge,
    ledger,
    senders,
    tables,
    sealing: config.sealing,
    fingerprintKey: config.fingerprintKey,
    owner: processId,
    inFlight: config.inFlight,
    clock,
    log,
    answered: metrics.counter('apply_answers_total', 'What apply calls came to', ['merchant', 'answer']),
    took: metrics.seconds('apply_seconds', 'How long apply calls took', []),
  })
  lifecycle.own('apply calls', (overdue) => dispatch.drain(overdue))
  lifecycle.loop('dispatch', () => dispatch.turn())
  const keyTrial = new KeyTrial(ledger, log)
  lifecycle.loop(
    'payouts that waited for a key',
    async (sign) => (await keyTrial.turn(sign)) ?? HOUSEKEEPING_EVERY_MS,
  )
  return dispatch
}

export function senderOf(
  { maxInFlight, ratePerSecond }: Merchant,
  { client, dialect, ...account }: ConnectedAccount,
  notifyUrl: string,
): Sender {
  return {
    account: { ...account, promises: promisesOf(dialect) },
    limits: { maxInFlight, ratePerSecond },
    leaseMs: dialect.leaseMs,
    sendTimeoutMs: longestSendMs(dialect.sendTimeoutMs),
    apply: ({ orderNo, amount, currency }, details, mayStillSend) =>
      client.apply(
        { ...details, mchOrderNo: orderNo as string, amount, currency, notifyUrl },
        { mayStillSend },
      ),
    balance: () => client.balance(),
  }
}

function intake({ config, ledger, codec, metrics, lifecycle, log }: Shared): void {
  const deps = {
    ledger,
    terms: config.merchants,
    keys: keysOf(config),
    decode: (value: Buffer | null) => codec.decode(value),
    log,
    counted: metrics.counter(
      'commands_total',
      'Requests for payouts by what became of them as they came, and what was dead-lettered',
      ['outcome'],
    ),
  }
  const consumption = consumeBatches({
    connection: config.kafka,
    groupId: config.kafkaGroup,
    topics: [ledger.topics.commands],
    partitionsAtOnce: 2,
    begin: (at, logOf, known) =>
      begin(at, logOf, { ledger, merchantIds: [...config.merchants.keys()], log }, known),
    async handler(batch) {
      const name = `intake of partition ${batch.partition}`
      try {
        await takeIn(batch, deps)
        lifecycle.heartbeats.succeed(name)
      } catch (error) {
        lifecycle.heartbeats.fail(name)
        throw error
      }
    },
    sign: () => lifecycle.heartbeats.sign('intake'),
    log,
  })
  const rounds: WaitingDeps['rounds'] = new Rounds()
  lifecycle.loop('commands that wait', (sign) =>
    takeInWaiting({ ...deps, rounds, ledger: { ...ledger, db: signing(sign, ledger.db) } }),
  )
  lifecycle.own('intake', async () => {
    await consumption.stop()
    lifecycle.heartbeats.forget('intake')
  })
}
