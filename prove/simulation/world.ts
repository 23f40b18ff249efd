import { encoderOf } from '../../src/app/ledger.ts'
import { SAFEGUARDS, type Safeguards } from '../../src/app/safeguards.ts'
import { type Merchant, readMerchant } from '../../src/config/merchants.ts'
import type { PayoutCommand } from '../../src/domain/commands/command.ts'
import { orderNumber } from '../../src/domain/identifiers.ts'
import type { Instant } from '../../src/domain/instant.ts'
import { formatRupees } from '../../src/domain/money.ts'
import { accountOf, type GatewaySettings, withAccount } from '../../src/gateway/dialect/account.ts'
import type { SentRequest } from '../../src/gateway/transport/transport.ts'
import type { WireRequest } from '../../src/gateway/wire/request.ts'
import { watchServer } from '../../src/ledger/failover-watch.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { recoveringMerchants } from '../../src/ledger/sql/fenced-merchants.ts'
import { schemaSubjects, topicNames } from '../../src/messages/topics.ts'
import { adoptSettings } from '../../src/operators/gateway-settings.ts'
import { pauseMerchant, resumeMerchant } from '../../src/operators/pause.ts'
import type { EarlierLedger } from '../../src/operators/recovery/earlier-ledger.ts'
import { lowerFence } from '../../src/operators/recovery/nothing-lost.ts'
import { publishedBeyond } from '../../src/operators/recovery/published-beyond.ts'
import { retryMessages } from '../../src/operators/retry-messages.ts'
import { refusedMessages } from '../../src/operators/sql/retry-messages.ts'
import type { TopicRecord } from '../../src/platform/kafka/records.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { type Codec, openCodec } from '../../src/platform/registry/codec.ts'
import { type Actor, ActorFault, type Step } from './actor.ts'
import { type Account, type Callback, Gateway, type SimulatedReply } from './gateway.ts'
import { Kafka, registryOf } from './kafka.ts'
import { Broken, Oracle } from './oracle.ts'
import type { Postgres } from './postgres.ts'
import { LOOK_AGAIN_MS, type Loop, Process } from './process.ts'
import { Recovery } from './recovery.ts'

export type Rules = {
  refusesDuplicates: boolean
  processes: number
  /**
   * Every account has paid something before, so that there is an order known to exist. If not, queries find nothing
   * at first.
   */
  hasPaid: boolean
  /** A gateway that refuses duplicates may fail to find an order for longer than the grace. */
  isForgetful: boolean
}
export type Put = (whole: Safeguards) => Partial<Safeguards>

/** A request on its way, or its answer on the way back. */
type Call = {
  actor: Actor
  mchId: string
  request: WireRequest
  mchOrderNo: string | null
  sentAt: Instant
  reply: SimulatedReply | null
  /** The caller has its answer, or has given up. */
  over: boolean
  /** The request or its answer is lost: the caller waits until it gives up. */
  isLost: boolean
  answer: (sent: SentRequest) => void
}

/** What the scheduler may let happen next. */
export type Action = { what: string; run: () => void | Promise<void> }

/** The fate of the next step of one kind: it fails, or its process is killed or frozen. */
export type Trap = {
  kind: Step['kind']
  moment: 'before' | 'after'
  by: 'a cut' | 'a crash' | 'a freeze'
}

/** An apply reaches the gateway within this time after its bytes left, or never. */
const ARRIVES_WITHIN_MS = 8_000
const HIDDEN_FOR_MS = 20_000
const FORGOTTEN_FOR_MS = 60_000
const BLIND_AT_FIRST_MS = 100_000
const QUERY_AFTER_MS = [3_000, 5_000, 10_000, 20_000, 30_000]
const CLIENT_TIMEOUT_MS = 3_000
const DEADLINE_MS = 120_000
const BEGAN = Date.UTC(2026, 10, 30, 9)

/** Each merchant begins with its first account; a story may change it to the other. */
const ACCOUNTS: readonly (Account & { merchantId: string })[] = [
  { merchantId: 'acme', mchId: '1000100', key: 'key of acme', available: 250_000n },
  { merchantId: 'acme', mchId: '1000101', key: 'other key of acme', available: 250_000n },
  { merchantId: 'bolt', mchId: '1000200', key: 'key of bolt', available: 150_000n },
  { merchantId: 'bolt', mchId: '1000201', key: 'other key of bolt', available: 150_000n },
]
const MERCHANT_IDS = ['acme', 'bolt']

/** Describes a gateway that pays one number twice, as a dialect must: the grace is longer than the lease. */
const dialectOverrides = (refusesDuplicates: boolean) => ({
  duplicateApply: refusesDuplicates ? 'refused' : 'unknown',
  absence: { graceMs: 30_000, confirmations: 2 },
  queryAfterMs: QUERY_AFTER_MS,
})

/**
 * The settings. `changed`: whether a merchant uses its other account; after a change, the settings keep the unused
 * one.
 */
function merchantsOf(
  { refusesDuplicates }: Rules,
  changed: ReadonlyMap<string, boolean>,
): Map<string, Merchant> {
  const gateway = ({ mchId, key }: Account) => ({
    baseUrl: 'https://gateway.example',
    mchId,
    key: `env:KEY_OF_${mchId}`,
    dialect: 'sandbox',
    dialectOverrides: dialectOverrides(refusesDuplicates),
    env: { [`KEY_OF_${mchId}`]: key },
  })
  return new Map(
    MERCHANT_IDS.map((id) => {
      const [first, other] = ACCOUNTS.filter(({ merchantId }) => merchantId === id).map(gateway) as [
        ReturnType<typeof gateway>,
        ReturnType<typeof gateway>,
      ]
      const [current, ...former] =
        changed.get(id) === undefined ? [first] : changed.get(id) ? [other, first] : [first, other]
      const { env, ...inUse } = current
      const given = {
        id,
        ...inUse,
        formerAccounts: former.map(({ env: _, ...settings }) => settings),
        maxInFlight: 4,
        feeEstimatePaise: 500,
        // The commands of a story resemble each other in the compared fields.
        holdChangedBeneficiaries: false,
      }
      const read = readMerchant(given, { ...env, ...former[0]?.env })
      if ('faults' in read)
        throw new Error(`the simulation's settings are wrong: ${JSON.stringify(read.faults)}`)
      return [id, { ...read.merchant, deadlineMs: DEADLINE_MS }]
    }),
  )
}

const isForgetful = (rules: Rules): boolean => rules.refusesDuplicates && rules.isForgetful

/**
 * Without an order known to exist, "not found" proves nothing, and a fence stays up. If the gateway may not find an
 * order for longer than the grace, payoutd cannot query what was lost.
 */
const canFailOver = (rules: Rules): boolean => rules.hasPaid && !isForgetful(rules)

const realImmediate = setImmediate
/** Everything that should happen at once has happened, also what waited for the next turn of the event loop. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise<void>((resolve) => realImmediate(resolve))
}

/** One simulated installation with its environment. Things happen in it only through `act`. */
export class SimulatedWorld {
  readonly rules: Rules
  /** The settings for an actor that starts now. */
  merchants: ReadonlyMap<string, Merchant>
  readonly postgres: Postgres
  readonly codec: Codec
  readonly topics = topicNames()
  readonly kafka = new Kafka()
  /** All commands from upstream. */
  readonly commands: PayoutCommand[] = []
  readonly gateway: Gateway
  readonly uuid: () => string
  readonly oracle: Oracle
  now: Instant = BEGAN
  /** Events so far, one after the other. */
  acts = 0
  /** The events shown to a reader, one sentence each. */
  readonly told: string[] = []
  /** How far the database's clock is ahead of all others. */
  databaseAheadMs = 0
  processes: Process[] = []
  /** A person's `payoutd recover`; null: none has run yet. */
  recovery: Recovery | null = null
  /** What actors wait for. */
  steps: Step[] = []
  calls: Call[] = []
  readonly away = new Set<'database' | 'kafka' | 'gateway'>()
  /** Gateway accounts that accept connections but never answer. */
  readonly hanging = new Set<string>()
  /** Accounts whose answers come over a proxy that is one answer behind, with that answer. */
  readonly behind = new Map<string, SimulatedReply | null>()
  trap: Trap | null = null
  /** The standby has the ledger as last copied; false: it has nothing of it. */
  copied = false
  /** Merchants that ever changed their account, and whether they use the other one. */
  readonly #changed = new Map<string, boolean>()
  readonly #put: Put
  #started = 0
  #ids = 0
  #failure: Error | null = null
  #agenda: SimulatedSchedule | null = null
  /** When the next regular check finds whether the ledger was set back. */
  #lookAgainAt = 0
  #lookedAt = BEGAN
  #patienceMs = PATIENCE_MS
  /** A person whose recovery could not finish tries again, but not at once. */
  #recoverAgainAt = 0

  private constructor(rules: Rules, put: Put, postgres: Postgres, codec: Codec) {
    this.rules = rules
    this.merchants = merchantsOf(rules, this.#changed)
    this.postgres = postgres
    this.codec = codec
    this.gateway = new Gateway(
      ACCOUNTS.map(({ mchId, key, available }) => ({ mchId, key, available })),
      {
        refusesDuplicates: rules.refusesDuplicates,
        hiddenForMs: isForgetful(rules) ? FORGOTTEN_FOR_MS : HIDDEN_FOR_MS,
      },
    )
    this.uuid = () => `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}`
    this.#put = put
    this.oracle = new Oracle(this)
  }

  static async begin(rules: Rules, put: Put, postgres: Postgres): Promise<SimulatedWorld> {
    await postgres.clear()
    const subjects = schemaSubjects(topicNames())
    const codec = await openCodec(registryOf(subjects), subjects)
    const world = new SimulatedWorld(rules, put, postgres, codec)
    world.setDatabaseClock()
    if (rules.hasPaid) {
      await world.personsLedger()
      for (const account of ACCOUNTS) await world.#hasPaid(account)
    } else world.gateway.blindUntil = BEGAN + BLIND_AT_FIRST_MS
    for (let i = 0; i < rules.processes; i++) world.start([i, i + rules.processes].filter((each) => each < 2))
    await settled()
    return world
  }

  /** An order from before the story, which both the gateway and the ledger have. */
  async #hasPaid({ merchantId, mchId }: (typeof ACCOUNTS)[number]): Promise<void> {
    const orderNo = `BEFORE${mchId}`
    const { accountId } = accountOf(this.#settingsOf(mchId))
    this.gateway.orders.push(this.gateway.paidBefore(mchId, orderNo, this.now))
    await this.postgres.db.run(paidBefore, { merchantId, payoutId: orderNo, orderNo, accountId })
  }

  #settingsOf(mchId: string): GatewaySettings {
    const merchants = [new Map<string, boolean>(), new Map(MERCHANT_IDS.map((id) => [id, true]))].flatMap(
      (changed) => [...merchantsOf(this.rules, changed).values()],
    )
    return merchants.find((merchant) => merchant.mchId === mchId) as GatewaySettings
  }

  /** Time since the story began: `1:05.250` is a minute, five seconds and a quarter. */
  tell(sentence: string): void {
    const ms = this.now - BEGAN
    const seconds = ((ms % 60_000) / 1000).toFixed(3).padStart(6, '0')
    this.told.push(`${Math.floor(ms / 60_000)}:${seconds}  ${sentence}`)
  }

  merchantOf = (mchId: string): string =>
    ACCOUNTS.find((account) => account.mchId === mchId)?.merchantId ?? ''

  /** The upstream system puts a command on its topic. */
  produce(command: PayoutCommand): void {
    const { merchantId, payoutId, amount } = command
    const number = orderNumber(merchantId, payoutId, 1)
    this.commands.push(command)
    this.oracle.asks(command, number)
    const encode = this.codec.encoder<object>(this.topics.commands, 'in.payoutd.PayoutRequested')
    this.#append(command, encode(command))
    const { deadline, notBefore } = command
    const by = deadline === null ? '' : `, within ${(deadline - this.now) / 1000} s`
    const from = notBefore === null ? '' : `, in ${(notBefore - this.now) / 1000} s`
    this.tell(`upstream asks ${merchantId} for ${payoutId}: ${formatRupees(amount)}${by}${from}`)
  }

  produceCancel(command: PayoutCommand): void {
    const { merchantId, payoutId } = command
    const encode = this.codec.encoder<object>(this.topics.commands, 'in.payoutd.PayoutCancelRequested')
    this.#append(
      command,
      encode({ merchantId, payoutId, reason: 'left', requestedBy: 'hr', requestedAt: this.now }),
    )
    this.tell(`upstream cancels ${payoutId}`)
  }

  #append({ payoutId }: PayoutCommand, value: Buffer): void {
    this.kafka.append(payoutId.charCodeAt(payoutId.length - 1), payoutId, value, this.now)
    this.stir()
  }

  /**
   * For a person's decision by a command of payoutd, which first checks the server, as the product does with every
   * new connection to a ledger.
   */
  async personsLedger(): Promise<Ledger> {
    this.setDatabaseClock()
    await watchServer([...this.merchants.keys()], silentLogger)(this.postgres.db)
    return {
      db: this.postgres.db,
      topics: this.topics,
      encode: encoderOf(this.codec, this.topics),
    }
  }

  /** Something failed that the simulation did not cause: the story ends here. */
  fail(error: unknown): void {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const cause = error instanceof Error && error.cause instanceof Error ? `\n${error.cause.stack}` : ''
    this.#failure ??= error instanceof Broken ? error : new Broken('nothing is thrown', reason + cause)
  }

  setDatabaseClock(): void {
    this.postgres.setClock(this.now + this.databaseAheadMs)
  }

  start(partitions: readonly number[]): Process {
    const started = this.#started++
    const name = String.fromCharCode(65 + (started % 26)).repeat(1 + Math.floor(started / 26))
    const process = new Process(name, partitions, this, (started) => {
      const whole: Safeguards = {
        ...SAFEGUARDS,
        connectDatabase: () => started.database(),
        createPublisher: () => ({
          publish: (records) => started.publish(records),
          close: async () => undefined,
        }),
      }
      return { ...whole, ...this.#put(whole) }
    })
    this.processes.push(process)
    process.start()
    this.stir()
    return process
  }

  /** The actor loses its memory; its requests may still arrive. A process is replaced by another. */
  crash(actor: Actor): void {
    actor.alive = false
    this.steps = this.steps.filter((step) => step.actor !== actor)
    this.calls = this.calls.filter((call) => call.actor !== actor || call.reply === null)
    if (!(actor instanceof Process)) {
      this.tell(`${actor.name} is killed`)
      return
    }
    this.processes = this.processes.filter((each) => each !== actor)
    const heir = this.start([...actor.partitions])
    this.tell(`${actor.name} crashes, and ${heir.name} starts`)
  }

  freeze(actor: Actor): void {
    actor.frozen = true
    this.tell(`${actor.name} is frozen`)
  }

  thaw(actor: Actor): void {
    actor.frozen = false
    this.stir()
    this.tell(`${actor.name} goes on`)
  }

  /** Something happened that an actor may have to react to, such as a person's change to the ledger. */
  stir(): void {
    this.#agenda = null
    for (const process of this.processes) for (const loop of process.loops) loop.idle = 0
  }

  /** The ledger has changed. */
  change(): void {
    this.#patienceMs = PATIENCE_MS
    this.stir()
  }

  /** A request's bytes leave. */
  leave(actor: Actor, mchId: string, request: WireRequest): { answered: Promise<SentRequest> } {
    const mchOrderNo = new URLSearchParams(request.body).get('mchOrderNo')
    const sentAt = this.now
    const answered = new Promise<SentRequest>((resolve) => {
      const answer = (sent: SentRequest) => {
        // A person's command stores what it receives before any other actor can react.
        if (actor instanceof Process) this.stir()
        resolve(sent)
      }
      this.calls.push({
        actor,
        mchId,
        request,
        mchOrderNo,
        sentAt,
        reply: null,
        over: false,
        isLost: false,
        answer,
      })
    })
    if (request.path.endsWith('/agentpay/apply')) {
      try {
        this.oracle.sees(mchOrderNo, this.now - (actor.claimedAt.get(mchOrderNo ?? '') ?? 0))
      } catch (error) {
        this.fail(error)
      }
    }
    return { answered }
  }

  /** Lets one thing happen, and all that follows from it at once. */
  async act({ what, run }: Action): Promise<void> {
    this.now += 1
    if (++this.acts > MOST_ACTS)
      throw new Broken('everything comes to rest', `it does not within ${MOST_ACTS} steps`)
    if (what !== '') this.tell(what)
    await run()
    await settled()
    if (this.#failure) throw this.#failure
  }

  /** All that may happen now, in an order that depends only on the story. */
  actions(): Action[] {
    return [
      ...this.steps.filter(({ actor }) => !actor.frozen).map((step) => this.#stepAction(step)),
      ...this.calls.flatMap((call) => this.#callActions(call)),
      ...this.#actors()
        .filter(({ frozen }) => !frozen)
        .flatMap(({ timers }) =>
          [...timers.due]
            .filter(({ at }) => at <= this.now)
            .map((timer) => ({ what: '', run: () => timers.fire(timer) })),
        ),
      ...this.processes
        .filter(({ frozen }) => !frozen)
        .flatMap((process) =>
          process.loops
            .filter((loop) => this.#hasWork(loop) && loop.at <= this.now)
            .map((loop) => ({ what: '', run: () => process.turn(loop) })),
        ),
    ]
  }

  #actors(): Actor[] {
    return this.recovery?.alive ? [...this.processes, this.recovery] : this.processes
  }

  /** A loop that found no work rests until something happens. */
  #hasWork = (loop: Loop): boolean => !loop.busy && loop.idle < loop.restsAfter

  #stepAction(step: Step): Action {
    const { actor, kind, name } = step
    return {
      what: kind === 'statement' ? '' : `${actor.name}: ${kind} "${name}"`,
      run: async () => {
        const trap = this.trap?.kind === kind ? this.trap : null
        if (trap) this.trap = null
        if (trap?.by === 'a freeze' && trap.moment === 'before') {
          this.freeze(actor)
          return
        }
        this.steps = this.steps.filter((each) => each !== step)
        const away =
          kind === 'publish' || kind === 'read'
            ? this.away.has('kafka')
            : kind !== 'send' && this.away.has('database')
        const effective = !away && !(trap && trap.moment === 'before')
        if (trap) this.tell(`… ${trap.moment} which ${actor.name} meets ${trap.by}`)
        let outcome: { result: unknown } | { error: unknown }
        try {
          outcome = { result: await step.act(effective) }
        } catch (error) {
          outcome = { error }
        }
        if (trap?.by === 'a crash') this.crash(actor)
        else if (trap?.by === 'a freeze') {
          this.steps.unshift({
            ...step,
            kind: 'statement',
            act: async () => ('result' in outcome ? outcome.result : Promise.reject(outcome.error)),
          })
          this.freeze(actor)
        } else if (trap?.by === 'a cut' && 'result' in outcome && kind !== 'send') {
          step.hear({ error: new ActorFault('the connection broke after the commit') })
        } else step.hear(outcome)
      },
    }
  }

  #callActions(call: Call): Action[] {
    const { actor, reply, over, request, mchId } = call
    const listens = !over && actor.alive && !actor.frozen
    const about = this.aboutCall(call)
    const late = call.isLost || this.now > call.sentAt + ARRIVES_WITHIN_MS
    const isForgotten = over || !actor.alive
    const actions: Action[] = []
    if (reply === null && late && isForgotten) {
      actions.push({ what: `the ${about} never arrives`, run: () => this.lose(call) })
    } else if (reply === null && !late && !this.hanging.has(mchId)) {
      actions.push({
        what: `the ${about} arrives`,
        run: () => {
          const taken = this.gateway.take(request, this.now)
          this.tell(`the gateway ${taken.what}`)
          call.reply = taken.reply
          if (isForgotten) this.lose(call)
          this.oracle.checkGateway()
        },
      })
    } else if (reply !== null && listens && !call.isLost) {
      actions.push({ what: `${actor.name} has the answer to the ${about}`, run: () => this.#answer(call) })
    }
    if (listens && this.now >= call.sentAt + CLIENT_TIMEOUT_MS) {
      actions.push({
        what: `${actor.name} gives up waiting for the answer to the ${about}`,
        run: () => this.giveUp(call),
      })
    }
    return actions
  }

  aboutCall({ request, mchOrderNo }: Call): string {
    const what = request.path.split('/').at(-1)
    return mchOrderNo ? `${what} for ${this.oracle.payoutOf(mchOrderNo)}` : `${what}`
  }

  #answer(call: Call): void {
    this.lose(call)
    const { httpStatus, body } = this.#mixedUp(call, call.reply as SimulatedReply)
    call.answer({ kind: 'answered', httpStatus, body, tookMs: this.now - call.sentAt })
  }

  /** The answer that arrives: while the proxy is behind, that to the request before. The balance has a connection of its own. */
  #mixedUp({ mchId, mchOrderNo, request: { path } }: Call, reply: SimulatedReply): SimulatedReply {
    const earlier = this.behind.get(mchId)
    if (earlier === undefined || path.endsWith('/query_balance')) return reply
    this.behind.set(mchId, reply)
    if (earlier === null) return reply
    this.tell('it is the answer to the request before')
    // An acceptance names no order: it may give this one the number of another.
    if (mchOrderNo !== null && path.endsWith('/agentpay/apply')) this.oracle.doubts({ mchOrderNo })
    return earlier
  }

  /** The caller gets no answer; the request may still arrive. */
  giveUp(call: Call): void {
    call.over = true
    if (call.reply !== null) this.lose(call)
    const tookMs = this.now - call.sentAt
    call.answer({
      kind: 'lost',
      reason: 'timeout',
      code: 'UND_ERR_HEADERS_TIMEOUT',
      httpStatus: null,
      tookMs,
    })
  }

  lose(call: Call): void {
    this.calls = this.calls.filter((each) => each !== call)
  }

  /** A callback reaches a process; the gateway drops it once it is answered `success`. */
  callBack(callback: Callback, process: Process): Action {
    const { mchId, rawQuery, mchOrderNo, said } = callback
    const merchantId = this.merchantOf(mchId)
    return {
      what: `${process.name} is called back about ${this.oracle.payoutOf(mchOrderNo)}: ${said}`,
      run: () =>
        process.timers.run(() => {
          process
            .receive(merchantId, rawQuery)
            .then((status) => {
              this.tell(`the callback about ${this.oracle.payoutOf(mchOrderNo)} is answered ${status}`)
              if (status === 200)
                this.gateway.callbacks = this.gateway.callbacks.filter((each) => each !== callback)
            })
            .catch((error: unknown) => this.fail(error))
        }),
    }
  }

  advance(ms: number): void {
    this.now += ms
  }

  /** Lets everything happen that is due within this many milliseconds, one after the other. */
  async pass(ms: number): Promise<void> {
    const until = this.now + ms
    do await this.settle()
    while (await this.wait(until))
  }

  /** A person puts the merchant's other account in force, for actors that start from now on. */
  async changeAccount(merchantId: string): Promise<void> {
    this.#changed.set(merchantId, !this.#changed.get(merchantId))
    this.merchants = merchantsOf(this.rules, this.#changed)
    this.tell(`a person puts another gateway account of ${merchantId} in force`)
    await this.adopt()
  }

  /** Restarts processes whose settings differ from the current ones. */
  startAgain(): void {
    for (const process of this.processes) if (process.merchants !== this.merchants) this.crash(process)
  }

  /** As the product's own asks Kafka (src/operators/recovery/earlier-ledger.ts). */
  readonly earlier: EarlierLedger = async () => {
    const { events, results } = this.topics
    const isTold = this.kafka.published.some(({ topic }) => topic === events || topic === results)
    return isTold ? 'this ledger was empty, but another one has published' : null
  }

  /** A person puts the intended settings in force. */
  async adopt(): Promise<void> {
    const { db } = await this.personsLedger()
    for (const merchant of this.merchants.values())
      await adoptSettings(db, withAccount(merchant), BY, this.earlier)
    this.stir()
  }

  /** Commits from now on are lost if another server takes over. */
  async copy(): Promise<void> {
    await this.postgres.copy()
    this.copied = true
    this.tell('a standby has all that the ledger has')
  }

  /** Another server takes over, with the last copy, or `byPlan` with everything. */
  async failOver({ byPlan = false } = {}): Promise<void> {
    if (!canFailOver(this.rules)) return
    const loses = this.copied && !byPlan
    if (loses) await this.postgres.setBack()
    else this.postgres.takeOver()
    this.#lookAgainAt = this.now + LOOK_AGAIN_MS
    this.tell(`another server takes over, ${loses ? 'without what was committed since' : 'with all'}`)
    if (loses) this.oracle.isSetBack()
    this.stir()
  }

  /** A person says that the last failover lost nothing, which must be true. */
  async vouch(): Promise<void> {
    if (!canFailOver(this.rules) || (this.recovery && !this.recovery.over)) return
    this.setDatabaseClock()
    const { codec, kafka } = this
    const ledger = await this.personsLedger()
    const readTopic = async (name: string, onRecord: (record: TopicRecord) => Promise<void>) => {
      for (const record of kafka.topic(name)) await onRecord({ ...record, partition: 0 })
    }
    const lacking = await publishedBeyond({ ledger, codec, readTopic })
    for (const merchantId of MERCHANT_IDS) {
      const { kept } = await lowerFence(merchantId, { ...BY, lacking }, ledger)
      this.tell(`a person says that ${merchantId} lost nothing: ${kept ?? 'sending goes on'}`)
    }
    this.stir()
  }

  /** A person runs `payoutd recover` for every fenced merchant, or for all if none is; unless it runs already. */
  async recover(): Promise<void> {
    if (!canFailOver(this.rules)) return
    if (this.recovery && !this.recovery.over) return
    this.setDatabaseClock()
    const fenced = (await this.postgres.db.run(recoveringMerchants, {})).map(({ merchantId }) => merchantId)
    this.recovery = new Recovery(this, fenced.length > 0 ? fenced : MERCHANT_IDS)
    this.recovery.start()
    this.tell('a person runs payoutd recover')
  }

  /** Moves the clock to the next event that needs only time, but not beyond `until`. False: there is none. */
  async wait(until = FOREVER): Promise<boolean> {
    const scheduled = await this.#look()
    const due = scheduled.at === null ? FOREVER : scheduled.at - this.databaseAheadMs
    // payoutd checks payouts that wait for money or for their turn repeatedly, at ever longer intervals.
    const again = scheduled.waiting ? Math.max(this.now + 1, this.#lookedAt + this.#patienceMs) : FOREVER
    const soon = [
      this.#lookAgainAt,
      this.#recoverAgainAt,
      ...this.calls.map(
        ({ sentAt, over, actor }) =>
          sentAt + (over || !actor.alive ? ARRIVES_WITHIN_MS + 1 : CLIENT_TIMEOUT_MS),
      ),
      ...this.#actors().flatMap(({ timers }) => [...timers.due].map(({ at }) => at)),
      ...this.processes.flatMap(({ loops }) => loops.filter(this.#hasWork).map(({ at }) => at)),
    ].filter((at) => at > this.now)
    const at = Math.min(due, again, ...soon)
    if (at > until) {
      this.now = until
      return false
    }
    if (at === FOREVER) return false
    this.now = Math.max(this.now, at)
    if (at === due || at === again || at === this.#lookAgainAt) this.stir()
    if (at === again) {
      this.#lookedAt = this.now
      this.#patienceMs = Math.min(2 * this.#patienceMs, LONGEST_PATIENCE_MS)
    }
    return true
  }

  /** The ledger's schedule; queried only if the ledger has changed, or the due time has come. */
  async #look(): Promise<SimulatedSchedule> {
    const now = this.now + this.databaseAheadMs
    if (this.#agenda === null || (this.#agenda.at !== null && this.#agenda.at <= now)) {
      this.setDatabaseClock()
      const [scheduled] = await this.postgres.db.run(nextDue, {})
      this.#agenda = scheduled as SimulatedSchedule
    }
    return this.#agenda
  }

  /** No actor learns of anything any more. */
  end(): void {
    for (const actor of this.#actors()) actor.alive = false
    this.steps = []
  }

  /** Runs one action after the other, until nothing is left to do at this moment. */
  async settle(): Promise<void> {
    for (let done = 0; ; done++) {
      const [first] = this.actions()
      if (!first) return
      if (done === MOST_ACTIONS)
        throw new Broken('everything comes to rest', 'the same is done over and over again')
      await this.act(first)
    }
  }

  /**
   * No process is frozen, nothing fails any more, persons have done their part, the gateway pays what it has, and
   * time goes on until nothing is left to wait for. Merchants whose gateway hangs come last: the others wait for
   * none of it.
   */
  async rest(): Promise<void> {
    this.tell('everything comes to rest')
    this.away.clear()
    this.trap = null
    this.gateway.verdicts.length = 0
    this.gateway.blindUntil = 0
    this.behind.clear()
    this.kafka.refusedKeys.clear()
    for (const actor of this.#actors()) if (actor.frozen) this.thaw(actor)
    await this.#resumeAll()
    this.startAgain()
    if (this.hanging.size > 0) {
      await this.#untilQuiet(HANGS_ON_MS)
      await this.oracle.checkBeside(this.hanging)
      this.hanging.clear()
    }
    await this.#untilQuiet(LONGEST_REST_MS)
    await this.oracle.checkRest()
  }

  async #resumeAll(): Promise<void> {
    this.setDatabaseClock()
    for (const merchantId of this.merchants.keys()) await this.resume(merchantId)
    await this.adopt()
  }

  async pause(merchantId: string): Promise<void> {
    const { feeEstimate } = this.merchants.get(merchantId) as Merchant
    const { kind } = await pauseMerchant(this.postgres.db, { merchantId, feeEstimate, ...BY })
    if (kind === 'paused') await this.oracle.pauses(merchantId)
    this.tell(`a person pauses ${merchantId}`)
  }

  async resume(merchantId: string): Promise<void> {
    await this.oracle.resumes(merchantId)
    const { kind } = await resumeMerchant(this.postgres.db, { merchantId, ...BY })
    if (kind === 'resumed') this.tell(`a person resumes ${merchantId}`)
    this.stir()
  }

  async #untilQuiet(withinMs: number): Promise<void> {
    const began = this.now
    do {
      await this.settle()
      for (const order of this.gateway.orders.filter(({ status }) => status === 'processing')) {
        this.tell(`the gateway pays ${this.oracle.payoutOf(order.mchOrderNo)}`)
        this.gateway.end(order, 'success', this.now)
      }
      for (const callback of this.gateway.callbacks.filter(({ mchId }) => !this.hanging.has(mchId))) {
        await this.act(this.callBack(callback, this.processes[0] as Process))
        await this.settle()
      }
      await this.#doWhatPersonsDo()
      if (this.now > began + withinMs) {
        if (withinMs < LONGEST_REST_MS) return
        await this.oracle.checkFences()
        throw new Broken('everything comes to rest', 'time goes on, and something is still to be done')
      }
    } while (await this.wait())
  }

  /** payoutd's requests to people: to recover fenced merchants, and to have refused messages published. */
  async #doWhatPersonsDo(): Promise<void> {
    const { fenced, refusals } = await this.#look()
    if (fenced && this.now >= this.#recoverAgainAt) {
      this.#recoverAgainAt = this.now + RECOVERS_EVERY_MS
      await this.recover()
    }
    if (!refusals) return
    const { db } = this.postgres
    const refused = await db.run(refusedMessages, { limit: 100 })
    await retryMessages(db, { positions: refused.map(({ position }) => position), ...BY })
    this.change()
  }
}

const BY = { by: 'meera', reason: 'as it was meant' }
/** A gateway that hangs while all else rests does so for this long: beyond every deadline. */
const HANGS_ON_MS = 300_000
const RECOVERS_EVERY_MS = 60_000
const MOST_ACTIONS = 5_000
/** For a whole story; most have less than a tenth. */
const MOST_ACTS = 30_000
const LONGEST_REST_MS = 900_000
const FOREVER = Number.POSITIVE_INFINITY
const PATIENCE_MS = 500
const LONGEST_PATIENCE_MS = 8_000

/** In its own batch: the oracle does not know such a command. */
const paidBefore = sql<{ merchantId: string; payoutId: string; orderNo: string; accountId: string }>`
  insert into payouts (merchant_id, payout_id, batch_id, order_no, account_id, amount, currency, priority, state, version,
                       attempt, agentpay_order_id, fee, utr, deadline, ready, sent_at)
  values (${'merchantId'}, ${'payoutId'}, 'before', ${'orderNo'}, ${'accountId'}, 100, 'INR', 0, 'paid', 4,
          1, ${'orderNo'}, 0, ${'orderNo'}, now(), false, now())`

/** When a payout is due next, or a merchant may send again; and whether anything could be sent or published now. */
type SimulatedSchedule = { at: Instant | null; waiting: boolean; fenced: boolean; refusals: boolean }
const nextDue = sql<object, SimulatedSchedule>`
  select
    least(
      (select min(due_at) from payouts where due_at > now()),
      (select min(circuit_open_until) from merchants where circuit_open_until > now())
    ) as at,
    exists (select from payouts where ready or due_at <= now()) or exists (select from outbox) as waiting,
    exists (select from merchants where recovering_since is not null) as fenced,
    exists (select from outbox_refused) as refusals`
