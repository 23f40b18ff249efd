import { type Merchant, readMerchant } from '../../src/config/merchants.ts'
import type { WireRequest } from '../../src/gateway/request.ts'
import type { Sent } from '../../src/gateway/transport.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { schemaSubjects, topicNames } from '../../src/ledger/topics.ts'
import { encoderOf } from '../../src/main.ts'
import type { PayoutCommand } from '../../src/payout/command.ts'
import { orderNumber } from '../../src/payout/identifiers.ts'
import type { Instant } from '../../src/payout/instant.ts'
import { formatRupees } from '../../src/payout/money.ts'
import type { Ids } from '../../src/platform/ids.ts'
import { type Codec, openCodec } from '../../src/platform/kafka/codec.ts'
import { sql } from '../../src/platform/postgres.ts'
import { SAFEGUARDS, type Safeguards } from '../../src/safeguards.ts'
import { type Account, type Callback, Gateway, type Reply } from './gateway.ts'
import { Kafka, registryOf } from './kafka.ts'
import { Broken, Oracle } from './oracle.ts'
import type { Postgres } from './postgres.ts'
import { type Loop, Process, type Step, Trouble } from './process.ts'

export type Rules = { refusesDuplicates: boolean; processes: number }
export type Tell = (sentence: string) => void
export type Put = (whole: Safeguards) => Partial<Safeguards>

/** A request on its way, and its answer on the way back. */
type Call = {
  process: Process
  request: WireRequest
  mchOrderNo: string | null
  sentAt: Instant
  reply: Reply | null
  /** Whoever asked has its answer, or has given up. */
  over: boolean
  answer: (sent: Sent) => void
}

/** What the scheduler may let happen next. */
export type Action = { what: string; run: () => void | Promise<void> }

/** What the next step of one kind comes to: a process hears that it failed, is killed, or is frozen. */
export type Trap = {
  kind: Step['kind']
  moment: 'before' | 'after'
  by: 'a cut' | 'a crash' | 'a freeze'
}

/** An apply is at the gateway so soon after its bytes left, or never. */
const ARRIVES_WITHIN_MS = 8_000
const HIDDEN_FOR_MS = 20_000
const QUERY_AFTER_MS = [3_000, 5_000, 10_000, 20_000, 30_000]
const CLIENT_TIMEOUT_MS = 3_000
const DEADLINE_MS = 120_000
const BEGAN = Date.UTC(2026, 10, 30, 9)

const ACCOUNTS: readonly (Account & { merchantId: string })[] = [
  { merchantId: 'acme', mchId: '1000100', key: 'key of acme', available: 250_000n },
  { merchantId: 'bolt', mchId: '1000200', key: 'key of bolt', available: 150_000n },
]

/** A gateway that pays one number twice, as a dialect must describe it: the grace is longer than the lease. */
const dialectOverrides = (refusesDuplicates: boolean) => ({
  duplicateApply: refusesDuplicates ? 'refused' : 'unknown',
  absence: { graceMs: 30_000, confirmations: 2 },
  queryAfterMs: QUERY_AFTER_MS,
})

function merchantsOf({ refusesDuplicates }: Rules): Map<string, Merchant> {
  return new Map(
    ACCOUNTS.map(({ merchantId: id, mchId, key }) => {
      const given = {
        id,
        baseUrl: 'https://gateway.example',
        mchId,
        key: 'env:KEY',
        dialect: 'sandbox',
        dialectOverrides: dialectOverrides(refusesDuplicates),
        maxInFlight: 4,
        feeEstimatePaise: 500,
        // Commands of a story resemble one another; that they are held is not what it is about.
        holdDuplicates: false,
        holdChangedBeneficiaries: false,
      }
      const read = readMerchant(given, { KEY: key })
      if ('faults' in read)
        throw new Error(`the simulation's settings are wrong: ${JSON.stringify(read.faults)}`)
      return [id, { ...read.merchant, deadlineMs: DEADLINE_MS }]
    }),
  )
}

const realImmediate = setImmediate
/** Everything that was to happen at once has happened. */
const settled = () => new Promise<void>((resolve) => realImmediate(resolve))

/** One simulated installation with all that it has to do with. Nothing happens in it but by `act`. */
export class World {
  readonly rules: Rules
  readonly merchants: ReadonlyMap<string, Merchant>
  readonly postgres: Postgres
  readonly codec: Codec
  readonly topics = topicNames()
  readonly kafka = new Kafka()
  /** All that upstream asked for. */
  readonly commands: PayoutCommand[] = []
  readonly gateway: Gateway
  readonly ids: Ids
  readonly oracle: Oracle
  now: Instant = BEGAN
  /** How far the database's clock is from everybody else's. */
  databaseAheadMs = 0
  processes: Process[] = []
  /** What processes wait for. */
  steps: Step[] = []
  calls: Call[] = []
  readonly away = new Set<'database' | 'kafka' | 'gateway'>()
  trap: Trap | null = null
  readonly #put: Put
  readonly #tell: Tell | null
  #started = 0
  #ids = 0
  #failure: Error | null = null
  #lookedAt = BEGAN
  #patienceMs = PATIENCE_MS

  private constructor(rules: Rules, put: Put, postgres: Postgres, codec: Codec, tell: Tell | null) {
    this.rules = rules
    this.merchants = merchantsOf(rules)
    this.postgres = postgres
    this.codec = codec
    this.gateway = new Gateway(
      ACCOUNTS.map(({ mchId, key, available }) => ({ mchId, key, available })),
      { refusesDuplicates: rules.refusesDuplicates, hiddenForMs: HIDDEN_FOR_MS },
    )
    this.ids = { uuid: () => `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}` }
    this.#put = put
    this.#tell = tell
    this.oracle = new Oracle(this)
  }

  static async begin(rules: Rules, put: Put, postgres: Postgres, tell: Tell | null): Promise<World> {
    await postgres.clear()
    const subjects = schemaSubjects(topicNames())
    const codec = await openCodec(registryOf(subjects), subjects)
    const world = new World(rules, put, postgres, codec, tell)
    for (let i = 0; i < rules.processes; i++) world.start([i, i + rules.processes].filter((each) => each < 2))
    await settled()
    return world
  }

  /** Since the story began: `1:05.250` is a minute, five seconds and a quarter. */
  tell(sentence: string): void {
    if (!this.#tell) return
    const ms = this.now - BEGAN
    const seconds = ((ms % 60_000) / 1000).toFixed(3).padStart(6, '0')
    this.#tell(`${Math.floor(ms / 60_000)}:${seconds}  ${sentence}`)
  }

  /** Upstream puts a command on its topic. */
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

  /** For what a person decides by a command of payoutd. */
  get personsLedger(): Ledger {
    return {
      db: this.postgres.db,
      topics: this.topics,
      ids: this.ids,
      encode: encoderOf(this.codec, this.topics),
    }
  }

  /** Something happened that nobody made happen: the story ends here. */
  fail(error: unknown): void {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const cause = error instanceof Error && error.cause instanceof Error ? `\n${error.cause.stack}` : ''
    this.#failure ??= error instanceof Broken ? error : new Broken('nothing is thrown', reason + cause)
  }

  setDatabaseClock(): void {
    this.postgres.setClock(this.now + this.databaseAheadMs)
  }

  start(partitions: readonly number[]): Process {
    const name = String.fromCharCode(65 + this.#started++)
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

  /** What it had in memory is gone; its requests may still arrive. Another one starts in its place. */
  crash(process: Process): void {
    process.alive = false
    this.processes = this.processes.filter((each) => each !== process)
    this.steps = this.steps.filter((step) => step.process !== process)
    const heir = this.start([...process.partitions])
    this.tell(`${process.name} crashes, and ${heir.name} starts`)
  }

  freeze(process: Process): void {
    process.frozen = true
    this.tell(`${process.name} is frozen`)
  }

  thaw(process: Process): void {
    process.frozen = false
    this.stir()
    this.tell(`${process.name} goes on`)
  }

  /** Something happened that somebody may have to act on. */
  stir(): void {
    for (const process of this.processes) for (const loop of process.loops) loop.idle = 0
  }

  /** The ledger is another one. */
  change(): void {
    this.#patienceMs = PATIENCE_MS
    this.stir()
  }

  /** A request's bytes leave. */
  leave(process: Process, merchant: Merchant, request: WireRequest): { answered: Promise<Sent> } {
    const mchOrderNo = new URLSearchParams(request.body).get('mchOrderNo')
    const sentAt = this.now
    const answered = new Promise<Sent>((resolve) => {
      const answer = (sent: Sent) => {
        this.stir()
        resolve(sent)
      }
      this.calls.push({ process, request, mchOrderNo, sentAt, reply: null, over: false, answer })
    })
    if (request.path.endsWith('/agentpay/apply')) this.oracle.sees(merchant.mchId, mchOrderNo)
    return { answered }
  }

  /** Lets one thing happen, and all that follows from it at once. */
  async act({ what, run }: Action): Promise<void> {
    this.now += 1
    if (what !== '') this.tell(what)
    await run()
    await settled()
    if (this.#failure) throw this.#failure
  }

  /** All that may happen now, in an order that depends on nothing but the story. */
  actions(): Action[] {
    return [
      ...this.steps.filter(({ process }) => !process.frozen).map((step) => this.#stepAction(step)),
      ...this.calls.flatMap((call) => this.#callActions(call)),
      ...this.#running().flatMap((process) =>
        [...process.timers.due]
          .filter(({ at }) => at <= this.now)
          .map((timer) => ({ what: '', run: () => process.timers.fire(timer) })),
      ),
      ...this.#running().flatMap((process) =>
        process.loops
          .filter((loop) => this.#hasWork(loop) && loop.at <= this.now)
          .map((loop) => ({ what: '', run: () => process.turn(loop) })),
      ),
    ]
  }

  #running(): Process[] {
    return this.processes.filter(({ frozen }) => !frozen)
  }

  /** A loop that found nothing to do some times over rests until something happens. */
  #hasWork = (loop: Loop): boolean => !loop.busy && loop.idle < REST_AFTER

  #stepAction(step: Step): Action {
    const { process, kind, name } = step
    return {
      what: kind === 'statement' ? '' : `${process.name}: ${kind} "${name}"`,
      run: async () => {
        const trap = this.trap?.kind === kind ? this.trap : null
        if (trap) this.trap = null
        if (trap?.by === 'a freeze' && trap.moment === 'before') {
          this.freeze(process)
          return
        }
        this.steps = this.steps.filter((each) => each !== step)
        const away =
          kind === 'publish' ? this.away.has('kafka') : kind !== 'send' && this.away.has('database')
        const effective = !away && !(trap && trap.moment === 'before')
        if (trap) this.tell(`… ${trap.moment} which ${process.name} meets ${trap.by}`)
        let outcome: { result: unknown } | { error: unknown }
        try {
          outcome = { result: await step.act(effective) }
        } catch (error) {
          outcome = { error }
        }
        if (trap?.by === 'a crash') this.crash(process)
        else if (trap?.by === 'a freeze') {
          this.steps.unshift({
            ...step,
            kind: 'statement',
            act: async () => ('result' in outcome ? outcome.result : Promise.reject(outcome.error)),
          })
          this.freeze(process)
        } else if (trap?.by === 'a cut' && 'result' in outcome && kind !== 'send') {
          step.hear({ error: new Trouble('the connection broke after the commit') })
        } else step.hear(outcome)
      },
    }
  }

  #callActions(call: Call): Action[] {
    const { process, reply, over, request } = call
    const about = this.aboutCall(call)
    const late = this.now > call.sentAt + ARRIVES_WITHIN_MS
    const actions: Action[] = []
    if (reply === null && late) {
      actions.push({ what: `the ${about} never arrives`, run: () => this.lose(call) })
    } else if (reply === null) {
      actions.push({
        what: `the ${about} arrives`,
        run: () => {
          const taken = this.gateway.take(request, this.now)
          this.tell(`the gateway ${taken.what}`)
          call.reply = taken.reply
          if (over) this.lose(call)
          this.oracle.checkGateway()
        },
      })
    } else if (!over && process.alive && !process.frozen) {
      actions.push({ what: `${process.name} has the answer to the ${about}`, run: () => this.#answer(call) })
    }
    if (!over && process.alive && !process.frozen && this.now >= call.sentAt + CLIENT_TIMEOUT_MS) {
      actions.push({
        what: `${process.name} gives up waiting for the answer to the ${about}`,
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
    const { httpStatus, body } = call.reply as Reply
    call.answer({ kind: 'answered', httpStatus, body, tookMs: this.now - call.sentAt })
  }

  /** Whoever asked hears that nobody knows; the request may still arrive. */
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

  /** A callback comes to a process; the gateway forgets it once it is answered `success`. */
  callBack(callback: Callback, process: Process): Action {
    const { mchId, rawQuery, mchOrderNo, said } = callback
    const merchantId = ACCOUNTS.find((account) => account.mchId === mchId)?.merchantId ?? ''
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

  /** Moves the clock on to when something happens by time alone. False: nothing ever will. */
  async wait(): Promise<boolean> {
    this.setDatabaseClock()
    const [agenda] = await this.postgres.db.run(nextDue, {})
    const due = agenda?.at === null || agenda === undefined ? FOREVER : agenda.at - this.databaseAheadMs
    // What waits for money or for its turn is looked at again and again, at ever longer intervals.
    const again = agenda?.waiting ? Math.max(this.now + 1, this.#lookedAt + this.#patienceMs) : FOREVER
    const soon = [
      ...this.calls.map(({ sentAt, over }) => sentAt + (over ? ARRIVES_WITHIN_MS + 1 : CLIENT_TIMEOUT_MS)),
      ...this.processes.flatMap(({ timers, loops }) => [
        ...[...timers.due].map(({ at }) => at),
        ...loops.filter(this.#hasWork).map(({ at }) => at),
      ]),
    ].filter((at) => at > this.now)
    const at = Math.min(due, again, ...soon)
    if (at === FOREVER) return false
    this.now = Math.max(this.now, at)
    if (at === due || at === again) this.stir()
    if (at === again) {
      this.#lookedAt = this.now
      this.#patienceMs = Math.min(2 * this.#patienceMs, LONGEST_PATIENCE_MS)
    }
    return true
  }

  /** Nobody hears of anything any more. */
  end(): void {
    for (const process of this.processes) process.alive = false
    this.steps = []
  }

  /** One after the other, until nothing is left to do at this moment. */
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
   * Nobody is frozen, nothing fails any more, the gateway pays what it has, and time goes on until there is
   * nothing left to wait for.
   */
  async rest(): Promise<void> {
    this.tell('everything comes to rest')
    this.away.clear()
    this.trap = null
    this.gateway.verdicts.length = 0
    for (const process of this.processes) if (process.frozen) this.thaw(process)
    const began = this.now
    do {
      await this.settle()
      for (const order of this.gateway.orders.filter(({ status }) => status === 'processing')) {
        this.tell(`the gateway pays ${this.oracle.payoutOf(order.mchOrderNo)}`)
        this.gateway.end(order, 'success', this.now)
      }
      for (const callback of [...this.gateway.callbacks]) {
        await this.act(this.callBack(callback, this.processes[0] as Process))
        await this.settle()
      }
      if (this.now > began + LONGEST_REST_MS) {
        throw new Broken('everything comes to rest', 'time goes on, and something is still to be done')
      }
    } while (await this.wait())
    await this.oracle.checkRest()
  }
}

const REST_AFTER = 3
const MOST_ACTIONS = 5_000
const LONGEST_REST_MS = 1_800_000
const FOREVER = Number.POSITIVE_INFINITY
const PATIENCE_MS = 500
const LONGEST_PATIENCE_MS = 8_000

/** When a payout is due next, or a merchant may send again; and whether anything could be sent or published now. */
const nextDue = sql<object, { at: Instant | null; waiting: boolean }>`
  select
    least(
      (select min(due_at) from payouts where due_at > now()),
      (select min(circuit_open_until) from merchants where circuit_open_until > now())
    ) as at,
    exists (select from payouts where ready or due_at <= now()) or exists (select from outbox) as waiting`
