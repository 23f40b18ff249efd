import { readFileSync } from 'node:fs'
import avro from 'avsc'
import type { PayoutCommand } from '../../src/domain/commands/command.ts'
import { payoutKey } from '../../src/domain/identifiers.ts'
import type { Instant } from '../../src/domain/instant.ts'
import type { Topics } from '../../src/messages/topics.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { type Gateway, type Order, payeeOf } from './gateway.ts'
import type { Kafka } from './kafka.ts'
import type { Postgres } from './postgres.ts'

/** What a simulation can break: the invariants of docs/design.md, and what a reader of its results relies on. */
export type Invariant =
  | 'paid at most once'
  | 'who was asked for is paid, what was asked for'
  | 'never more is asked for than the balance covers'
  | 'nothing is sent once its lease is over'
  | 'nothing is claimed while it is paused'
  | 'what is held for a person is released by a person'
  | 'what looks like an earlier payment is held for a person'
  | 'nothing is sent before its time, or after its deadline'
  | 'fenced only where the ledger was set back'
  | 'what was cancelled before it came is cancelled'
  | 'what is to be cancelled is sent no more, unless a person says so'
  | 'what hangs holds up nobody else'
  | 'an event id stands for one thing'
  | "paid and failed only on the gateway's signed word, or a person's"
  | 'what is said paid was paid'
  | 'what is said failed was not paid'
  | 'nothing leaves an end'
  | 'versions without gaps'
  | 'a payoutId stands for its first command'
  | 'cancelled and rejected were never sent'
  | 'confirmed absent only what the gateway does not have'
  | 'each command is taken in'
  | 'each payout ends or is in review'
  | 'in review only where the story gives a reason'
  | 'each end is published under one event id'
  | 'everything comes to rest'
  | 'nothing is thrown'

export class Broken extends Error {
  readonly invariant: Invariant
  constructor(invariant: Invariant, detail: string) {
    super(`${invariant}: ${detail}`)
    this.invariant = invariant
  }
}

type PayoutRow = {
  merchantId: string
  payoutId: string
  orderNo: string | null
  state: string
  reason: string | null
  version: number
  amount: bigint
  attempt: number
  utr: string | null
  fee: bigint | null
}
const payouts = sql<object, PayoutRow>`
  select merchant_id, payout_id, order_no, state, reason, version, amount, attempt, utr, fee from payouts
  where batch_id is distinct from 'before' order by 1, 2`

type HistoryRow = {
  merchantId: string
  payoutId: string
  at: Instant
  version: number
  fromState: string | null
  toState: string
  reason: string | null
  source: string
  /** The restore lost the payout, and it was read back long after its end. */
  readBack: boolean
}
const history = sql<object, HistoryRow>`
  select merchant_id, payout_id, at, version, from_state, to_state, reason, source,
    coalesce(exchange ->> 'note', '') like 'read back%' as read_back
  from history where version is not null order by 1, 2, 4`

const attempts = sql<{ merchantId: string }, { payoutId: string; attempt: number }>`
  select payout_id, attempt from attempts
  where merchant_id = ${'merchantId'} and owner <> 'recovery' order by 1, 2`

/** The evidence that the ledger has lost something. */
const losses = sql<object, { merchantId: string; reason: string }>`
  select merchant_id, detail as reason from anomalies where kind = 'never-sent' order by 1, 2`

const isHeld = ({ toState, reason }: HistoryRow): boolean => toState === 'held' && reason === 'duplicate'

/** As in dialects/sandbox.json. */
const LEASE_MS = 15_000

const ENDS = ['paid', 'failed', 'rejected', 'cancelled']

/** Reads the messages like any consumer, with the published schemas and nothing of payoutd's. */
const TYPES = ['PayoutEvent', 'PayoutResult', 'PayoutAnomaly'].map((name) =>
  avro.Type.forSchema(
    JSON.parse(readFileSync(new URL(`../../schemas/${name}.avsc`, import.meta.url), 'utf8')),
  ),
)
const CONFLUENT_HEADER = 5
type Message = {
  merchantId: string
  payoutId: string
  version: number
  status?: string
  toState?: string
  amount: number
  utr?: string | null
}

type Anomaly = { merchantId: string; payoutId: string | null; kind: string }

const OTHER_END = 'end-published'

/**
 * A restore may have lost what was published between the version before and this one: about an end that was read
 * back, nothing more is known, and a decision left to a person is above everything published.
 */
const standsAbove = ({ readBack, toState, reason }: HistoryRow): boolean =>
  readBack || (toState === 'review' && reason === OTHER_END)

/** What the oracle compares. */
type Books = {
  readonly gateway: Gateway
  readonly kafka: Kafka
  readonly postgres: Postgres
  readonly topics: Topics
  readonly databaseAheadMs: number
  readonly rules: { refusesDuplicates: boolean }
  /** The merchant of a gateway account. */
  merchantOf(mchId: string): string
}

/** Compares payoutd's reports with the gateway's own books and with the commands. Shares no code with a decision. */
export class Oracle {
  readonly #world: Books
  /** The first command that upstream sent under each id. */
  readonly #asked = new Map<string, PayoutCommand>()
  readonly #tamperedWith = new Set<string>()
  readonly #cancelledFirst = new Set<string>()
  /** By payout that a person wants cancelled: its version at that time. */
  readonly #cancelledAt = new Map<string, number>()
  /** Payouts that a person sent again, with another deadline. */
  readonly #resent = new Set<string>()
  /** The ledger has lost something that was committed. */
  setBack = false
  /** By paused merchant, its attempts when the pause began. */
  readonly #paused = new Map<string, ReadonlySet<string>>()
  /** Order numbers whose bytes left. */
  readonly #sent = new Set<string>()
  readonly #names = new Map<string, string>()
  /** Order numbers that the story gives a person a reason to look at. */
  readonly #doubtful = new Set<string>()

  constructor(world: Books) {
    this.#world = world
  }

  asks(command: PayoutCommand, orderNo: string): void {
    const id = idOf(command)
    if (!this.#asked.has(id)) this.#asked.set(id, command)
    this.#names.set(orderNo, command.payoutId)
  }

  /** The payout of an order number. */
  payoutOf(orderNo: string): string {
    return this.#names.get(orderNo) ?? orderNo
  }

  /** The gateway reports something about this order that does not fit. */
  doubts({ mchOrderNo }: { mchOrderNo: string }): void {
    this.#doubtful.add(mchOrderNo)
  }

  /** Somebody changed its amount in the ledger. */
  isTamperedWith({ orderNo }: { orderNo: string }): void {
    this.#tamperedWith.add(orderNo)
    this.#doubtful.add(orderNo)
  }

  /** Its cancellation comes before its command. */
  cancelsFirst(command: PayoutCommand): void {
    this.#cancelledFirst.add(idOf(command))
  }

  /** A person has requested its cancellation. */
  async cancels(payout: { merchantId: string; payoutId: string }): Promise<void> {
    const id = idOf(payout)
    const row = (await this.#world.postgres.db.run(payouts, {})).find((each) => idOf(each) === id)
    if (row && !this.#cancelledAt.has(id)) this.#cancelledAt.set(id, row.version)
  }

  /** A person sends it again. */
  resends(payout: { merchantId: string; payoutId: string }): void {
    this.#resent.add(idOf(payout))
    this.#cancelledAt.delete(idOf(payout))
  }

  /** The bytes of an apply leave, this long after its claim. */
  sees(mchOrderNo: string | null, sinceClaimedMs: number): void {
    if (mchOrderNo === null) return
    this.#sent.add(mchOrderNo)
    must(
      sinceClaimedMs < LEASE_MS,
      'nothing is sent once its lease is over',
      () => `${this.payoutOf(mchOrderNo)} was claimed ${sinceClaimedMs / 1000} s ago`,
    )
  }

  /** A merchant is paused: its attempts are those of now. */
  async pauses(merchantId: string): Promise<void> {
    this.#paused.set(merchantId, await this.#attempts(merchantId))
  }

  /** Its pause ends, or the ledger loses it. */
  async resumes(merchantId: string): Promise<void> {
    const before = this.#paused.get(merchantId)
    this.#paused.delete(merchantId)
    for (const attempt of before ? await this.#attempts(merchantId) : [])
      must(before?.has(attempt) === true, 'nothing is claimed while it is paused', () => `${attempt} was`)
  }

  /** Another server took over without the latest commits: pauses and cancellation requests are lost with them. */
  isSetBack(): void {
    this.setBack = true
    this.#paused.clear()
    this.#cancelledAt.clear()
  }

  async #attempts(merchantId: string): Promise<ReadonlySet<string>> {
    const rows = await this.#world.postgres.db.run(attempts, { merchantId })
    return new Set(rows.map(({ payoutId, attempt }) => `attempt ${attempt} of ${payoutId}`))
  }

  /** While some gateways hang and nothing else is wrong: all other merchants' payouts must have ended. */
  async checkBeside(hanging: ReadonlySet<string>): Promise<void> {
    const held = new Set([...hanging].map((mchId) => this.#world.merchantOf(mchId)))
    for (const { merchantId, payoutId, state } of await this.#world.postgres.db.run(payouts, {}))
      must(
        held.has(merchantId) || ENDS.includes(state) || state === 'review',
        'what hangs holds up nobody else',
        () => `${payoutId} of ${merchantId} is still ${state}`,
      )
  }

  /** After every step: this must never happen, whatever the ledger says. */
  checkGateway(): void {
    const { gateway } = this.#world
    const paid = new Map<string, number>()
    for (const { mchId, mchOrderNo, timesPaid, status } of gateway.orders) {
      const key = `${this.#world.merchantOf(mchId)} ${mchOrderNo}`
      // It will pay what it has accepted and not paid yet.
      paid.set(key, (paid.get(key) ?? 0) + (status === 'processing' ? 1 : timesPaid))
    }
    for (const [key, times] of paid) {
      must(
        times <= 1,
        'paid at most once',
        () => `${this.payoutOf(key.split(' ')[1] ?? '')} is paid ${times} times`,
      )
    }
    const [overdrawn] = gateway.overdrawn
    must(
      overdrawn === undefined,
      'never more is asked for than the balance covers',
      () => `${this.payoutOf(overdrawn as string)} is`,
    )
  }

  /** Once everything has come to rest. */
  async checkRest(): Promise<void> {
    const { db } = this.#world.postgres
    this.checkGateway()
    const rows = await db.run(payouts, {})
    const told = await db.run(history, {})
    const otherEnds = this.#otherEnds()
    this.#checkHistory(told, otherEnds)
    this.#checkHeld(rows, told)
    for (const row of rows) this.#checkPayout(row)
    await this.checkFences()
    for (const [id, { payoutId }] of this.#asked) {
      must(
        rows.some((row) => idOf(row) === id),
        'each command is taken in',
        () => `${payoutId} is lost`,
      )
    }
    this.#checkPublished(rows, told, otherEnds)
  }

  async checkFences(): Promise<void> {
    const found = await this.#world.postgres.db.run(losses, {})
    must(
      found.length === 0 || this.setBack,
      'fenced only where the ledger was set back',
      () => `${found[0]?.merchantId}: ${found[0]?.reason}`,
    )
  }

  #checkPayout(row: PayoutRow): void {
    const { merchantId, payoutId, orderNo, state, reason, amount } = row
    const asked = this.#asked.get(idOf(row)) as PayoutCommand
    const orders = this.#ordersOf(merchantId, orderNo)
    must(
      amount === asked.amount || this.#tamperedWith.has(orderNo ?? ''),
      'a payoutId stands for its first command',
      () => `${payoutId} is about ${amount} paise`,
    )
    const payee = payeeOf({ ...asked, extra: JSON.stringify({ value: asked.vpa ?? asked.ifsc }) })
    for (const order of orders) {
      must(
        order.amount === asked.amount && order.payee === payee,
        'who was asked for is paid, what was asked for',
        () => `for ${payoutId} the gateway has ${order.amount} paise to ${order.payee}`,
      )
    }
    // A person must look at a payout that was published with another amount than the ledger has.
    const differs = state === 'review' && this.#tamperedWith.has(orderNo ?? '')
    // Of several lost ledgers, each of which published an end, a person decides.
    const hasEnds = state === 'review' && reason === 'end-published' && this.setBack
    must(
      state === 'cancelled' || differs || hasEnds || !this.#cancelledFirst.has(idOf(row)),
      'what was cancelled before it came is cancelled',
      () => `${payoutId} is ${state}`,
    )
    const paid = orders.some(({ timesPaid }) => timesPaid > 0)
    const kept = orders.some(({ timesPaid, returned }) => timesPaid > 0 && !returned)
    // A ledger that was set back queries the gateway: an order it does not have was not sent.
    const sent = this.setBack ? orders.length > 0 : this.#sent.has(orderNo ?? '')
    must(state !== 'paid' || paid, 'what is said paid was paid', () => `${payoutId} was not`)
    must(state !== 'failed' || !kept, 'what is said failed was not paid', () => `${payoutId} was`)
    must(
      (state !== 'cancelled' && state !== 'rejected') || !sent,
      'cancelled and rejected were never sent',
      () => `${payoutId} is ${state}, and its bytes left`,
    )
    must(
      ENDS.includes(state) || state === 'review',
      'each payout ends or is in review',
      () => `${payoutId} is still ${state} (${reason})`,
    )
    must(
      state !== 'review' || !paid || this.#doubtful.has(orderNo ?? ''),
      'in review only where the story gives a reason',
      () => `${payoutId} is in review (${reason}), and the gateway said that it paid it`,
    )
  }

  #ordersOf(merchantId: string, orderNo: string | null): Order[] {
    const { gateway } = this.#world
    return gateway.orders.filter(
      (order) => order.mchOrderNo === orderNo && this.#world.merchantOf(order.mchId) === merchantId,
    )
  }

  /** Of payouts that are the same payment, all but one are held at first, unless that one did not pay. */
  #checkHeld(rows: readonly PayoutRow[], told: readonly HistoryRow[]): void {
    const stories = Map.groupBy(told, idOf)
    const same = Map.groupBy(rows, (row) => {
      const { accountNo, amount } = this.#asked.get(idOf(row)) as PayoutCommand
      return JSON.stringify([row.merchantId, accountNo, String(amount)])
    })
    for (const each of same.values()) {
      const free = each.filter((row) => {
        const story = stories.get(idOf(row)) ?? []
        return story.some(({ toState }) => toState === 'submitting') && !story.some(isHeld)
      })
      const alive = free.filter(({ state }) => state === 'paid' || state === 'processing')
      must(alive.length <= 1, 'what looks like an earlier payment is held for a person', () =>
        alive.map(({ payoutId }) => payoutId).join(' and '),
      )
    }
  }

  /** Payouts with a published end that was then lost, and that differs from the ledger's. */
  #otherEnds(): ReadonlySet<string> {
    const { kafka, topics } = this.#world
    const anomalies = kafka.published.flatMap(({ topic, value }) =>
      topic === topics.anomalies && value ? [decode<Anomaly>(TYPES[2], value)] : [],
    )
    return new Set(
      anomalies.flatMap(({ merchantId, payoutId, kind }) =>
        kind === OTHER_END && payoutId !== null && this.setBack ? [idOf({ merchantId, payoutId })] : [],
      ),
    )
  }

  #checkHistory(rows: readonly HistoryRow[], otherEnds: ReadonlySet<string>): void {
    const { gateway } = this.#world
    let before: HistoryRow | null = null
    let latestAt: Instant = 0
    for (const row of rows) {
      const first = before === null || idOf(before) !== idOf(row)
      const { payoutId, version, fromState, toState, source, reason } = row
      if (first) latestAt = 0
      if (!row.readBack) latestAt = Math.max(latestAt, row.at)
      const expected = first ? 1 : (before as HistoryRow).version + 1
      must(
        version === expected || (version > expected && this.setBack && standsAbove(row)),
        'versions without gaps',
        () => `${payoutId} has version ${version} and not ${expected}`,
      )
      must(
        fromState === null || !ENDS.includes(fromState) || (otherEnds.has(idOf(row)) && standsAbove(row)),
        'nothing leaves an end',
        () => `${payoutId} was ${fromState}, is ${toState}`,
      )
      if ((toState === 'paid' || toState === 'failed') && source !== 'OPERATOR') {
        const orderNo = [...this.#names].find(([, name]) => name === payoutId)?.[0] ?? ''
        const word = `${orderNo} ${toState === 'paid' ? 'success' : 'failed'}`
        must(
          gateway.said.has(word) || (toState === 'failed' && gateway.refused.has(orderNo)),
          "paid and failed only on the gateway's signed word, or a person's",
          () => `${payoutId} is ${toState}, and the gateway said no such thing`,
        )
      }
      if (reason === 'proved-absent' || reason === 'confirmed-absent') this.#checkAbsent(row)
      if (!first && isHeld(before as HistoryRow) && toState === 'queued' && !row.readBack)
        must(
          source === 'OPERATOR',
          'what is held for a person is released by a person',
          () => `${payoutId} was released by ${source}`,
        )
      if (toState === 'submitting' && !row.readBack) {
        this.#checkTime(row, latestAt)
        must(
          version <= (this.#cancelledAt.get(idOf(row)) ?? version),
          'what is to be cancelled is sent no more, unless a person says so',
          () => `${payoutId} was`,
        )
      }
      before = row
    }
  }

  /** `latestAt`: the latest time of its story so far, as the clock may be set back between the release and the claim. */
  #checkTime(row: HistoryRow, latestAt: Instant): void {
    const { notBefore, deadline } = this.#asked.get(idOf(row)) as PayoutCommand
    must(
      (notBefore === null || latestAt >= notBefore) &&
        (deadline === null || row.at < deadline || this.#resent.has(idOf(row))),
      'nothing is sent before its time, or after its deadline',
      () => `${row.payoutId} was`,
    )
  }

  #checkAbsent({ merchantId, payoutId, at }: HistoryRow): void {
    const { gateway, databaseAheadMs, merchantOf, rules } = this.#world
    // If the gateway refuses duplicates, an order that stays unfound for too long does no harm.
    if (rules.refusesDuplicates) return
    const there = gateway.orders.some(
      (order) =>
        merchantOf(order.mchId) === merchantId &&
        this.payoutOf(order.mchOrderNo) === payoutId &&
        order.takenAt < at - databaseAheadMs,
    )
    must(!there, 'confirmed absent only what the gateway does not have', () => `${payoutId} was there`)
  }

  /**
   * A change before the recovery reads the published but lost versions takes their numbers (docs/design.md, "Not
   * seen"). Such a change can also be a report that the money came back, which then is the end.
   */
  #cameBackUnread(id: string): boolean {
    const { gateway } = this.#world
    return (
      this.setBack &&
      gateway.orders.some(
        ({ mchId, mchOrderNo, returned }) =>
          returned &&
          idOf({ merchantId: this.#world.merchantOf(mchId), payoutId: this.payoutOf(mchOrderNo) }) === id,
      )
    )
  }

  #checkPublished(
    rows: readonly PayoutRow[],
    told: readonly HistoryRow[],
    otherEnds: ReadonlySet<string>,
  ): void {
    const { kafka, topics } = this.#world
    const known = new Map(
      [...Map.groupBy(told, idOf)].map(([id, story]) => [id, new Set(story.map(({ version }) => version))]),
    )
    const isUnknown = (id: string, version: number) => known.get(id)?.has(version) !== true
    const events = new Map<string, Set<string>[]>()
    const results = new Map<string, Map<string, Message>>()
    const ended = new Map<string, string>()
    for (const { topic, value, headers } of kafka.published) {
      const type = topic === topics.events ? TYPES[0] : topic === topics.results ? TYPES[1] : undefined
      if (!type || !value) continue
      const message = decode<Message>(type, value)
      const eventId = String(headers?.ce_id)
      const id = idOf(message)
      const end = message.status ?? message.toState ?? ''
      if (ENDS.includes(end.toLowerCase())) {
        const first = ended.get(eventId) ?? end
        must(
          first === end || this.#cameBackUnread(id) || otherEnds.has(id),
          'an event id stands for one thing',
          () => `version ${message.version} of ${message.payoutId} is ${first}, and ${end}`,
        )
        ended.set(eventId, end)
      }
      if (topic === topics.results) {
        const ends = results.get(id) ?? new Map<string, Message>()
        results.set(id, ends.set(eventId, message))
        continue
      }
      const versions = events.get(id) ?? []
      const eventIds = versions[message.version - 1] ?? new Set<string>()
      must(
        versionsUpTo(message.version - 1).every((each) => versions[each - 1] || isUnknown(id, each)) ||
          kafka.everRefused.has(payoutKey(message)),
        'versions without gaps',
        () =>
          `version ${message.version} of ${message.payoutId} was published behind version ${versions.length}`,
      )
      versions[message.version - 1] = eventIds.add(eventId)
      must(
        eventIds.size === 1,
        'versions without gaps',
        () => `version ${message.version} of ${message.payoutId} has two event ids`,
      )
      events.set(id, versions)
    }
    for (const row of rows) {
      const { payoutId, state, reason, version, amount, utr } = row
      const id = idOf(row)
      const out = events.get(id) ?? []
      must(
        out.length === version && versionsUpTo(version).every((each) => out[each - 1] || isUnknown(id, each)),
        'versions without gaps',
        () => `${out.length} of ${version} events of ${payoutId} came out`,
      )
      const ends = [...(results.get(id)?.values() ?? [])]
      const last = ends.toSorted((a, b) => a.version - b.version).at(-1)
      const agrees = ({ status, amount: told, utr: named }: Message) =>
        status === state.toUpperCase() &&
        told === Number(amount) &&
        // A later report may have added what the report of the end left out.
        (named === utr || named === null)
      const most = this.setBack ? Number.POSITIVE_INFINITY : 1
      const right = ENDS.includes(state)
        ? ends.length > 0 &&
          ends.length <= most &&
          (ends.every(agrees) ||
            (this.#cameBackUnread(id) && ends.some(agrees)) ||
            (otherEnds.has(id) && last !== undefined && agrees(last)))
        : ends.length === 0 || (this.setBack && reason === OTHER_END)
      must(
        right,
        'each end is published under one event id',
        () =>
          `${payoutId} is ${state}, published was ${ends.map(({ status }) => status).join(' and ') || 'nothing'}`,
      )
    }
  }
}

const decode = <T>(type: avro.Type | undefined, value: Buffer): T =>
  type?.fromBuffer(value.subarray(CONFLUENT_HEADER)) as T

const versionsUpTo = (highest: number): number[] => Array.from({ length: highest }, (_, i) => i + 1)

const idOf = ({ merchantId, payoutId }: { merchantId: string; payoutId: string }): string =>
  JSON.stringify([merchantId, payoutId])

function must(holds: boolean, invariant: Invariant, detail: () => string): void {
  if (!holds) throw new Broken(invariant, detail())
}
