import { readFileSync } from 'node:fs'
import avro from 'avsc'
import type { Topics } from '../../src/ledger/topics.ts'
import type { PayoutCommand } from '../../src/payout/command.ts'
import type { Instant } from '../../src/payout/instant.ts'
import { sql } from '../../src/platform/postgres.ts'
import { type Gateway, payeeOf } from './gateway.ts'
import type { Kafka } from './kafka.ts'
import type { Postgres } from './postgres.ts'

/** What a simulation can break: the invariants of docs/design.md, and what a reader of its results relies on. */
export type Invariant =
  | 'paid at most once'
  | 'who was asked for is paid, what was asked for'
  | 'sent only under a number that stands in the ledger'
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
  select merchant_id, payout_id, order_no, state, reason, version, amount, attempt, utr, fee from payouts order by 1, 2`

type HistoryRow = {
  merchantId: string
  payoutId: string
  at: Instant
  version: number
  fromState: string | null
  toState: string
  reason: string | null
  source: string
}
const history = sql<object, HistoryRow>`
  select merchant_id, payout_id, at, version, from_state, to_state, reason, source
  from history where version is not null order by 1, 2, 4`

const ENDS = ['paid', 'failed', 'rejected', 'cancelled']

/** The messages as any consumer reads them, by the schemas that are published and nothing of payoutd's. */
const TYPES = ['PayoutEvent', 'PayoutResult'].map((name) =>
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
  amount: number
  utr?: string | null
}

/** What is compared. */
type Books = {
  readonly gateway: Gateway
  readonly kafka: Kafka
  readonly postgres: Postgres
  readonly topics: Topics
  readonly merchants: ReadonlyMap<string, { mchId: string }>
  readonly databaseAheadMs: number
}

/** Compares what payoutd says with the gateway's own books and with what was asked for. Shares no code with a decision. */
export class Oracle {
  readonly #world: Books
  /** What upstream asked for first under each id. */
  readonly #asked = new Map<string, PayoutCommand>()
  /** Order numbers whose bytes left. */
  readonly #sent = new Set<string>()
  readonly #names = new Map<string, string>()
  /** Order numbers about which the story gives a person a reason to look. */
  readonly #doubtful = new Set<string>()

  constructor(world: Books) {
    this.#world = world
  }

  asks(command: PayoutCommand, orderNo: string): void {
    const id = idOf(command)
    if (!this.#asked.has(id)) this.#asked.set(id, command)
    this.#names.set(orderNo, command.payoutId)
  }

  /** By whom an order is known here. */
  payoutOf(orderNo: string): string {
    return this.#names.get(orderNo) ?? orderNo
  }

  /** The gateway says of this order what does not fit. */
  doubts({ mchId, mchOrderNo }: { mchId: string; mchOrderNo: string }): void {
    this.#doubtful.add(`${mchId} ${mchOrderNo}`)
  }

  /** The bytes of an apply leave. */
  sees(mchId: string, mchOrderNo: string | null): void {
    this.#sent.add(`${mchId} ${mchOrderNo}`)
  }

  /** After every step: this must never be, whatever the ledger says. */
  checkGateway(): void {
    const { gateway } = this.#world
    const paid = new Map<string, number>()
    for (const { mchId, mchOrderNo, timesPaid, status } of gateway.orders) {
      const key = `${mchId} ${mchOrderNo}`
      // What it has taken and not paid yet, it will pay.
      paid.set(key, (paid.get(key) ?? 0) + (status === 'processing' ? 1 : timesPaid))
    }
    for (const [key, times] of paid) {
      must(
        times <= 1,
        'paid at most once',
        () => `${this.payoutOf(key.split(' ')[1] ?? '')} is paid ${times} times`,
      )
    }
  }

  /** Once everything has come to rest. */
  async checkRest(): Promise<void> {
    const { db } = this.#world.postgres
    this.checkGateway()
    const rows = await db.run(payouts, {})
    this.#checkHistory(await db.run(history, {}))
    for (const row of rows) this.#checkPayout(row)
    for (const [id, { payoutId }] of this.#asked) {
      must(
        rows.some((row) => idOf(row) === id),
        'each command is taken in',
        () => `${payoutId} is lost`,
      )
    }
    this.#checkPublished(rows)
  }

  #checkPayout(row: PayoutRow): void {
    const { gateway, merchants } = this.#world
    const { merchantId, payoutId, orderNo, state, reason, amount } = row
    const asked = this.#asked.get(idOf(row)) as PayoutCommand
    const { mchId } = merchants.get(merchantId) as { mchId: string }
    const orders = gateway.of(mchId, orderNo)
    must(
      amount === asked.amount,
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
    const paid = orders.some(({ timesPaid }) => timesPaid > 0)
    const kept = orders.some(({ timesPaid, returned }) => timesPaid > 0 && !returned)
    const sent = this.#sent.has(`${mchId} ${orderNo}`)
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
      state !== 'review' || !paid || this.#doubtful.has(`${mchId} ${orderNo}`),
      'in review only where the story gives a reason',
      () => `${payoutId} is in review (${reason}), and the gateway said that it paid it`,
    )
  }

  #checkHistory(rows: readonly HistoryRow[]): void {
    const { gateway, merchants } = this.#world
    let before: HistoryRow | null = null
    for (const row of rows) {
      const first = before === null || idOf(before) !== idOf(row)
      const { payoutId, version, fromState, toState, source, reason } = row
      const expected = first ? 1 : (before as HistoryRow).version + 1
      must(
        version === expected,
        'versions without gaps',
        () => `${payoutId} has version ${version} and not ${expected}`,
      )
      must(
        fromState === null || !ENDS.includes(fromState),
        'nothing leaves an end',
        () => `${payoutId} was ${fromState}, is ${toState}`,
      )
      if ((toState === 'paid' || toState === 'failed') && source !== 'OPERATOR') {
        const { mchId } = merchants.get(row.merchantId) as { mchId: string }
        const orderNo = [...this.#names].find(([, name]) => name === payoutId)?.[0] ?? ''
        const word = `${mchId} ${orderNo} ${toState === 'paid' ? 'success' : 'failed'}`
        must(
          gateway.said.has(word) || (toState === 'failed' && gateway.refused.has(orderNo)),
          "paid and failed only on the gateway's signed word, or a person's",
          () => `${payoutId} is ${toState}, and the gateway said no such thing`,
        )
      }
      if (reason === 'proved-absent' || reason === 'confirmed-absent') this.#checkAbsent(row)
      before = row
    }
  }

  #checkAbsent({ merchantId, payoutId, at }: HistoryRow): void {
    const { gateway, merchants, databaseAheadMs } = this.#world
    const { mchId } = merchants.get(merchantId) as { mchId: string }
    const there = gateway.orders.some(
      (order) =>
        order.mchId === mchId &&
        this.payoutOf(order.mchOrderNo) === payoutId &&
        order.takenAt < at - databaseAheadMs,
    )
    must(!there, 'confirmed absent only what the gateway does not have', () => `${payoutId} was there`)
  }

  #checkPublished(rows: readonly PayoutRow[]): void {
    const { kafka, topics } = this.#world
    const events = new Map<string, Set<string>[]>()
    const results = new Map<string, Map<string, Message>>()
    for (const { topic, value, headers } of kafka.published) {
      const type = topic === topics.events ? TYPES[0] : topic === topics.results ? TYPES[1] : undefined
      if (!type || !value) continue
      const message = type.fromBuffer(value.subarray(CONFLUENT_HEADER)) as Message
      const eventId = String(headers?.ce_id)
      const id = idOf(message)
      if (topic === topics.results) {
        const ends = results.get(id) ?? new Map<string, Message>()
        results.set(id, ends.set(eventId, message))
        continue
      }
      const versions = events.get(id) ?? []
      const known = versions[message.version - 1] ?? new Set<string>()
      must(
        message.version <= versions.length + 1,
        'versions without gaps',
        () =>
          `version ${message.version} of ${message.payoutId} was published behind version ${versions.length}`,
      )
      versions[message.version - 1] = known.add(eventId)
      must(
        known.size === 1,
        'versions without gaps',
        () => `version ${message.version} of ${message.payoutId} has two event ids`,
      )
      events.set(id, versions)
    }
    for (const row of rows) {
      const { payoutId, state, version, amount, utr } = row
      const told = events.get(idOf(row))?.length ?? 0
      must(
        told === version,
        'versions without gaps',
        () => `${told} of ${version} events of ${payoutId} came out`,
      )
      const ends = [...(results.get(idOf(row))?.values() ?? [])]
      const [end] = ends
      const right = ENDS.includes(state)
        ? ends.length === 1 &&
          end?.status === state.toUpperCase() &&
          end.amount === Number(amount) &&
          // What the report of the end left out may have been told later.
          (end.utr === utr || end.utr === null)
        : ends.length === 0
      must(
        right,
        'each end is published under one event id',
        () =>
          `${payoutId} is ${state}, published was ${ends.map(({ status }) => status).join(' and ') || 'nothing'}`,
      )
    }
  }
}

const idOf = ({ merchantId, payoutId }: { merchantId: string; payoutId: string }): string =>
  JSON.stringify([merchantId, payoutId])

function must(holds: boolean, invariant: Invariant, detail: () => string): void {
  if (!holds) throw new Broken(invariant, detail())
}
