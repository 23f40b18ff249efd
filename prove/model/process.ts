import { isWorthTelling, type Mood, rateAfter } from '../../src/dispatch/pace.ts'
import { SPEAKS_FOR_MS } from '../../src/gateway/positive-control.ts'
import type { ApplyAnswer, QueryAnswer } from '../../src/payout/answers.ts'
import type { OrderReport } from '../../src/payout/evidence.ts'
import type { Instant } from '../../src/payout/instant.ts'
import { formatRupees, paise, sum } from '../../src/payout/money.ts'
import type { Anomaly, Decision, Payout } from '../../src/payout/payout.ts'
import type { Asked } from '../../src/payout/record-query.ts'
import { become, change } from '../../src/payout/transition.ts'
import type { Clock } from './clock.ts'
import { unanswered } from './gateway.ts'
import { type Command, takeIn } from './intake.ts'
import { ConnectionCut, type Ledger, type Message, type Settings, store, type Tables } from './ledger.ts'
import type { ApplyCall, BalanceCall, Fate, Network, QueryCall } from './network.ts'
import type { Parts } from './parts.ts'
import { LIMITS, type Rules } from './rules.ts'

/** What a process has around it. */
export type Surroundings = {
  parts: Parts
  rules: Rules
  clock: Clock
  ledger: Ledger
  network: Network
  topic: readonly Command[]
  published: Message[]
  /** Of the next applies, one after the other. */
  fates: Fate[]
  tell: (sentence: () => string) => void
  stands: (payoutId: string) => string
  reach: (point: Point, process: Process) => void
}

/** Between two steps of a task anything may happen; it goes on once this holds. */
type Until = () => boolean
type Steps<T = void> = Generator<Until, T, void>
const ANYTIME: Until = () => true

/** Where the scheduler can have a process stopped. */
export type Point = 'claimed' | 'checked' | 'sent' | 'answered' | 'asked' | 'read' | 'published'

type Task = { name: string; steps: Steps; until: Until }
/** Something that a process can do next. */
export type Work = { name: string; run: () => void }

const LARGEST_WAVE = 64
const BALANCE_EVERY_MS = 500
/** Longer than any call, and than the pace makes the first payout wait. */
const WAIT_MS = 15_000
const RELAY_LEASE_MS = 10_000
const RELAY_RENEW_MS = 3_000

/**
 * One payoutd process with all roles. It puts the product's decisions together as its stages do, with every
 * place between two of them where another process, the gateway or a crash may come first. All that it knows
 * is in this object: a crash throws it away.
 */
export class Process {
  readonly name: string
  readonly settings: Settings
  frozen = false
  readonly #world: Surroundings
  #tasks: Task[] = []
  /** When a query last found an order. */
  #foundAt = Number.NEGATIVE_INFINITY
  #balanceAskedAt = Number.NEGATIVE_INFINITY
  #relayRenewAt = Number.NEGATIVE_INFINITY
  #position: number

  constructor(name: string, settings: Settings, world: Surroundings) {
    this.name = name
    this.settings = settings
    this.#world = world
    this.#position = world.ledger.tables.nextOffset
  }

  /** What it could do next: to go on with a task, or to begin a turn of a stage. */
  work(): Work[] {
    if (this.frozen) return []
    const { tables } = this.#world.ledger
    const payouts = [...tables.payouts.values()]
    const work = this.#tasks
      .filter(({ until }) => until())
      .map((task) => ({ name: task.name, run: () => this.#goOn(task) }))
    const turn = (name: string, run: () => void) => work.push({ name, run })
    if (this.#position < this.#world.topic.length && !this.#isAt('intake')) {
      turn('intake', () => this.#begin('intake', this.#takeIn()))
    }
    if (payouts.some(isDue(this.#now))) turn('poll', () => this.#poll())
    if (payouts.some(isReady(this.#now)) && this.#mayClaim()) turn('claim', () => this.#claim())
    if (tables.outbox.length > 0 && !this.#isAt('relay') && this.#ownsRelay()) {
      turn('relay', () => this.#begin('relay', this.#relay()))
    }
    return work
  }

  /** When, at the latest, time alone gives it something to do again; empty: it waits for nothing. */
  wakesAt(): Instant[] {
    const { payouts, outbox, relay } = this.#world.ledger.tables
    const dues = [...payouts.values()].flatMap(({ dueAt }) => (dueAt === null ? [] : [dueAt]))
    const waits = this.#tasks.length > 0 || [...payouts.values()].some(isReady(this.#now))
    return [
      ...dues,
      ...(waits ? [this.#now + WAIT_MS] : []),
      ...(outbox.length > 0 ? [relay.leaseUntil + 1] : []),
    ]
  }

  /** The callback door. False: it was not stored, so the gateway must come again. */
  hear(report: OrderReport): boolean {
    try {
      this.#settle(report.mchOrderNo, { source: 'CALLBACK', report })
      return true
    } catch (error) {
      return this.#mayGoOn(error)
    }
  }

  get #now(): Instant {
    return this.#world.clock.now
  }

  #isAt(name: string): boolean {
    return this.#tasks.some((task) => task.name === name)
  }

  #begin(name: string, steps: Steps): void {
    const task = { name, steps, until: ANYTIME }
    this.#tasks.push(task)
    this.#goOn(task)
  }

  #goOn(task: Task): void {
    const step = task.steps.next()
    if (step.done) this.#tasks = this.#tasks.filter((each) => each !== task)
    else task.until = step.value
  }

  #at(point: Point): Until {
    this.#world.reach(point, this)
    return ANYTIME
  }

  #tell(sentence: () => string): void {
    this.#world.tell(() => `${this.name} ${sentence()}`)
  }

  /** A transaction whose outcome nobody can say is told, and left to whoever looks next. Anything else is a bug. */
  #mayGoOn(error: unknown): false {
    if (!(error instanceof ConnectionCut)) throw error
    this.#tell(() => `loses its connection to the database ${error.message}`)
    return false
  }

  // Intake

  *#takeIn(): Steps {
    const { topic, ledger, parts, clock } = this.#world
    const from = this.#position
    const commands = topic.slice(from)
    this.#tell(() => `reads ${commands.length} of payout.commands`)
    yield ANYTIME
    try {
      if (parts.movesOffset === 'before them') {
        ledger.transaction((tables) => {
          tables.nextOffset = from + commands.length
        })
        yield ANYTIME
        ledger.transaction((tables) => takeIn(tables, commands, parts, clock.now))
      } else {
        ledger.transaction((tables) => {
          takeIn(tables, commands.slice(Math.max(0, tables.nextOffset - from)), parts, clock.now)
          tables.nextOffset = Math.max(tables.nextOffset, from + commands.length)
        })
      }
      this.#position = from + commands.length
      this.#tell(() => 'takes them in')
    } catch (error) {
      this.#mayGoOn(error)
    }
  }

  // Dispatch

  /** Whether a claim would come to anything. */
  #mayClaim(): boolean {
    const { ledger, parts } = this.#world
    const { purse, payouts } = ledger.tables
    const { askBalance, room } = parts.gate(purse, this.#inFlight(), 0, LIMITS, this.#now)
    const next = [...payouts.values()].find(isReady(this.#now))
    if (room > 0 && next && parts.covered([next.amount], purse).count > 0) return true
    return (room > 0 || askBalance) && this.#now >= this.#balanceAskedAt + BALANCE_EVERY_MS
  }

  #inFlight(): number {
    return [...this.#world.ledger.tables.payouts.values()].filter(({ state }) => state === 'submitting')
      .length
  }

  #claim(): void {
    const { parts, rules, ledger } = this.#world
    const now = this.#now
    try {
      const { wave, ask, found } = ledger.transaction((tables) => {
        const { purse } = tables
        const open = parts.gate(purse, this.#inFlight(), 0, LIMITS, now)
        if (open.room === 0) return { wave: [], ask: open.askBalance, found: purse }
        const next = [...tables.payouts.values()]
          .filter(isReady(now))
          .slice(0, Math.min(open.room, LARGEST_WAVE))
        const { count, cost } = parts.covered(
          next.map(({ amount }) => amount),
          purse,
        )
        const wave = next.slice(0, count).map((payout) => intend(payout, now + rules.leaseMs))
        if (parts.commitsIntent === 'before the send') store(tables, wave, now)
        const claimedTotal = paise(purse.claimedTotal + cost)
        const rateNext =
          count === 0 ? purse.rateNext : rateAfter(purse.rateNext, LIMITS.ratePerSecond, count, now)
        tables.purse = { ...purse, claimedTotal, rateNext }
        return { wave, ask: open.askBalance || count < next.length, found: purse }
      })
      if (ask && now >= this.#balanceAskedAt + BALANCE_EVERY_MS) this.#begin('balance', this.#askBalance())
      for (const intent of wave) {
        const { after } = intent.change
        this.#tell(() => `claims ${after.payoutId} as attempt ${after.attempt}`)
        this.#begin(
          `send of ${after.payoutId}`,
          this.#send(intent, now + rules.leaseMs - rules.callMs, found),
        )
      }
    } catch (error) {
      this.#mayGoOn(error)
    }
  }

  *#send(intent: Intent, sendBefore: Instant, found: Mood): Steps {
    const { parts, ledger, rules } = this.#world
    const { payoutId, attempt } = intent.change.after
    yield this.#at('claimed')
    const answer = yield* this.#apply(intent.change.after, sendBefore)
    yield this.#at('answered')
    const tell = isWorthTelling(answer, found)
    for (let stored = false; !stored; ) {
      try {
        ledger.transaction((tables) => {
          if (parts.commitsIntent === 'with the answer') storeLate(tables, intent, this.#now)
          if (tell) {
            tables.purse = { ...tables.purse, ...parts.afterAnswers(tables.purse, [answer], this.#now) }
          }
          const payout = known(tables, payoutId)
          store(tables, [parts.recordApply(payout, attempt, answer, rules.table, this.#now)], this.#now)
        })
        stored = true
      } catch (error) {
        this.#mayGoOn(error)
        yield ANYTIME
      }
    }
    this.#tell(() => `records ${answer.kind} for attempt ${attempt} of ${this.#world.stands(payoutId)}`)
  }

  *#apply({ payoutId, orderNo, amount, dueAt }: Payout, sendBefore: Instant): Steps<ApplyAnswer> {
    const { parts, rules, network, fates } = this.#world
    if (!parts.maySend(this.#now, sendBefore)) {
      this.#tell(() => `does not send ${payoutId}: its lease is over`)
      return { kind: 'not-sent', reason: 'lease-over', exchange: {} }
    }
    // A process frozen between that check and the write sends late. Only a gateway that refuses duplicates helps.
    if (rules.duplicateApply === 'refused') yield this.#at('checked')
    this.#tell(() => `sends ${payoutId}: ${formatRupees(amount)}`)
    const late = dueAt !== null && this.#now >= dueAt
    const call: ApplyCall = network.send({
      ...sent(this, this.#now),
      kind: 'apply',
      about: { payoutId, mchOrderNo: orderNo as string, amount, late, fate: fates.shift() ?? 'accept' },
    })
    yield this.#at('sent')
    yield () => call.answer !== null || this.#now >= call.sentAt + rules.callMs
    return call.answer ?? unanswered('timeout')
  }

  *#askBalance(): Steps {
    const { ledger, network, rules } = this.#world
    this.#balanceAskedAt = this.#now
    const { payouts, purse } = ledger.tables
    const inDoubt = [...payouts.values()].filter(({ state }) => state === 'submitting' || state === 'unknown')
    const mark = {
      snapshotClaimed: purse.claimedTotal,
      snapshotInDoubt: sum(inDoubt.map(({ amount }) => paise(amount + purse.feeEstimate))),
    }
    const call: BalanceCall = network.send({ ...sent(this, this.#now), kind: 'balance', about: null })
    yield () => call.answer !== null || this.#now >= call.sentAt + rules.callMs
    const { answer } = call
    if (answer === null || answer === 'unknown') return
    yield ANYTIME
    try {
      ledger.transaction((tables) => {
        const { purse } = tables
        if (purse.available !== null && purse.snapshotClaimed > mark.snapshotClaimed) return
        tables.purse = { ...purse, ...mark, ...answer, snapshotAt: this.#now }
      })
      this.#tell(() => `stores the balance, ${formatRupees(answer.available)}`)
    } catch (error) {
      this.#mayGoOn(error)
    }
  }

  // Settlement

  #poll(): void {
    const { ledger, parts, rules } = this.#world
    const now = this.#now
    try {
      const { due, toAsk } = ledger.transaction((tables) => {
        const due = [...tables.payouts.values()].filter(isDue(now))
        const toAsk: Payout[] = []
        const decisions = due.map((payout): Decision => {
          const decision = parts.whenDue(payout, rules.table, now)
          if (!('ask' in decision)) return decision
          toAsk.push(payout)
          return change(payout, { ...payout, dueAt: now + 2 * rules.callMs }, 'CLOCK', null)
        })
        store(tables, decisions, now)
        return { due, toAsk }
      })
      const moved = due.filter((payout) => !toAsk.includes(payout))
      for (const { payoutId } of moved)
        this.#tell(() => `finds that the time has come: ${this.#world.stands(payoutId)}`)
      for (const payout of toAsk) this.#begin(`query about ${payout.payoutId}`, this.#ask(payout))
    } catch (error) {
      this.#mayGoOn(error)
    }
  }

  *#ask({ payoutId, orderNo }: Payout): Steps {
    const mchOrderNo = orderNo as string
    const askedAt = this.#now
    const answer = yield* this.#query(payoutId, mchOrderNo)
    if (answer.kind === 'found') this.#foundAt = this.#now
    const positiveControl = answer.kind === 'not-found' && (yield* this.#controlHolds())
    yield this.#at('asked')
    try {
      this.#settle(mchOrderNo, { source: 'QUERY', answer, askedAt, positiveControl })
    } catch (error) {
      this.#mayGoOn(error)
    }
  }

  *#query(payoutId: string, mchOrderNo: string): Steps<QueryAnswer> {
    this.#tell(() => `asks the gateway about ${payoutId}`)
    const { network, rules } = this.#world
    const about = { payoutId, mchOrderNo, elsewhere: this.settings === 'wrong' }
    const call: QueryCall = network.send({ ...sent(this, this.#now), kind: 'query', about })
    yield () => call.answer !== null || this.#now >= call.sentAt + rules.callMs
    return call.answer ?? unanswered('timeout')
  }

  *#controlHolds(): Steps<boolean> {
    if (this.#now - this.#foundAt < SPEAKS_FOR_MS) return true
    const { payouts } = this.#world.ledger.tables
    const order = [...payouts.values()].find(
      ({ state, agentpayOrderId }) =>
        agentpayOrderId !== null && (state === 'processing' || state === 'paid' || state === 'failed'),
    )
    if (!order) return false
    const answer = yield* this.#query(order.payoutId, order.orderNo as string)
    if (answer.kind === 'found') this.#foundAt = this.#now
    return answer.kind === 'found'
  }

  #settle(mchOrderNo: string, heard: Heard): void {
    const { ledger } = this.#world
    const payoutId = ledger.transaction((tables) => {
      const payout = [...tables.payouts.values()].find(({ orderNo }) => orderNo === mchOrderNo)
      store(
        tables,
        [payout ? this.#decide(payout, heard) : unknownOrder(mchOrderNo, heard.source)],
        this.#now,
      )
      return payout?.payoutId ?? 'an order that nobody knows'
    })
    this.#tell(() => `hears ${inWords(heard, payoutId)}: ${this.#world.stands(payoutId)}`)
  }

  #decide(payout: Payout, heard: Heard): Decision {
    const { parts, rules } = this.#world
    if (heard.source === 'CALLBACK') {
      return parts.settle(payout, heard.report, 'CALLBACK', rules.table, this.#now)
    }
    const { answer } = heard
    switch (answer.kind) {
      case 'found':
        return parts.settle(payout, answer.report, 'QUERY', rules.table, this.#now)
      case 'not-found':
        return parts.recordAbsence(payout, answer.exchange, heard, rules.table, this.#now)
      case 'unknown':
        return parts.recordNoAnswer(payout, answer.exchange, rules.table, this.#now)
    }
  }

  // Relay

  #ownsRelay(): boolean {
    const { owner, leaseUntil } = this.#world.ledger.tables.relay
    return owner === this.name
      ? this.#now < leaseUntil || this.#now >= this.#relayRenewAt
      : leaseUntil < this.#now
  }

  *#relay(): Steps {
    const { ledger, parts, published } = this.#world
    if (this.#now >= this.#relayRenewAt) {
      ledger.tables.relay = { owner: this.name, leaseUntil: this.#now + RELAY_LEASE_MS }
      this.#relayRenewAt = this.#now + RELAY_RENEW_MS
    }
    const { outbox, relay } = ledger.tables
    if (relay.owner !== this.name) return
    const read = [...outbox]
    if (parts.forgetsMessages === 'when read') this.#forget(read)
    yield this.#at('read')
    published.push(...read)
    this.#tell(() => `publishes ${read.length} messages`)
    yield this.#at('published')
    if (parts.forgetsMessages === 'once published') this.#forget(read)
  }

  #forget(messages: readonly Message[]): void {
    const { tables } = this.#world.ledger
    tables.outbox = tables.outbox.filter((each) => !messages.includes(each))
  }
}

type Heard = { source: 'CALLBACK'; report: OrderReport } | ({ source: 'QUERY'; answer: QueryAnswer } & Asked)
type Intent = { change: { before: Payout; after: Payout; source: 'COMMAND'; exchange: null } }

function inWords(heard: Heard, payoutId: string): string {
  if (heard.source === 'CALLBACK') {
    const { status, amount, agentpayOrderId } = heard.report
    const money = amount === null ? 'no amount' : formatRupees(amount)
    return `callback for ${payoutId}, ${status}, ${money}, ${agentpayOrderId ?? 'no platform number'}`
  }
  const { answer } = heard
  return `answer about ${payoutId}, ${answer.kind === 'found' ? answer.report.status : answer.kind}`
}

function intend(before: Payout, leaseUntil: Instant): Intent {
  const after = become(before, 'submitting', { attempt: before.attempt + 1, dueAt: leaseUntil })
  return { change: { before, after, source: 'COMMAND', exchange: null } }
}

function storeLate(tables: Tables, intent: Intent, now: Instant): void {
  if (known(tables, intent.change.after.payoutId).version === intent.change.before.version) {
    store(tables, [intent], now)
  }
}

function known({ payouts }: Tables, payoutId: string): Payout {
  const payout = payouts.get(payoutId)
  if (!payout) throw new Error(`payout ${payoutId} was sent and is gone from the ledger`)
  return payout
}

const sent = ({ name }: Process, sentAt: Instant) => ({ from: name, sentAt, reply: null, answer: null })
const isDue =
  (now: Instant) =>
  ({ dueAt }: Payout): boolean =>
    dueAt !== null && dueAt <= now
const isReady =
  (now: Instant) =>
  ({ ready, deadline }: Payout): boolean =>
    ready && deadline > now

const unknownOrder = (orderNo: string, source: Anomaly['source']): Decision => ({
  anomaly: {
    merchantId: 'acme',
    payoutId: null,
    orderNo,
    kind: 'unknown-order',
    detail: 'a signed report came for an order that was never sent from here',
    source,
    exchange: null,
  },
})
