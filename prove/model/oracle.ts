import type { Instant } from '../../src/payout/instant.ts'
import type { Gateway } from './gateway.ts'
import type { Command } from './intake.ts'
import type { Ledger, Message } from './ledger.ts'
import { FEE } from './rules.ts'

/** The invariants of docs/design.md that a simulation can break, by name. */
export type Invariant =
  | 'paid at most once'
  | "paid and failed only on the gateway's signed word, or a person's"
  | 'what is said paid was paid'
  | 'what is said failed was not paid and will not be'
  | 'nothing leaves an end'
  | 'versions without gaps'
  | 'accepted = waiting + reserved + paid + released'
  | 'a payoutId stands for its first command'
  | 'reserved is covered by the balance'
  | 'cancelled and rejected were never sent'
  | 'proved absent only what the gateway does not have'
  | 'each command is taken in'
  | 'each payout ends or is in review by its deadline'
  | 'each end is published under one event id'
  | 'everything comes to rest'
  | 'decisions are values'

/** What it compares: what was asked for, what payoutd says and publishes, and what the gateway did. */
export type Books = {
  topic: readonly Command[]
  ledger: Ledger
  published: readonly Message[]
  gateway: Gateway
}

export class Broken extends Error {
  readonly invariant: Invariant
  constructor(invariant: Invariant, detail: string) {
    super(`${invariant}: ${detail}`)
    this.invariant = invariant
  }
}

const ENDS = ['paid', 'failed', 'rejected', 'cancelled']
const CLASSES: Record<string, 'waiting' | 'reserved' | 'paid' | 'released'> = {
  held: 'waiting',
  queued: 'waiting',
  submitting: 'reserved',
  unknown: 'reserved',
  processing: 'reserved',
  review: 'reserved',
  paid: 'paid',
  failed: 'released',
  cancelled: 'released',
  rejected: 'released',
}

/** Compares what the ledger says with the gateway's books and what was asked for. Shares no code with a decision. */
export class Oracle {
  readonly #books: Books
  /** How much of the history it has looked at. */
  #read = 0
  readonly #versions = new Map<string, number>()

  constructor(books: Books) {
    this.#books = books
  }

  /** To be called after every step. Throws `Broken`. */
  check(): void {
    const { history } = this.#books.ledger.tables
    for (; this.#read < history.length; this.#read++) this.#checkTransition(this.#read)
    this.#checkBooks()
    this.#checkSums()
  }

  /** What had its deadline before `until` is over by then; nobody could act on it before `since`. */
  checkDeadlines(since: Instant, until: Instant): void {
    for (const { payoutId, state, deadline } of this.#books.ledger.tables.payouts.values()) {
      const over = ENDS.includes(state) || state === 'review'
      must(
        over || Math.max(since, deadline) > until,
        'each payout ends or is in review by its deadline',
        () => `${payoutId} is still ${state}`,
      )
    }
  }

  /** To be called once everything has come to rest. */
  checkRest(): void {
    const { tables } = this.#books.ledger
    for (const each of this.#books.topic) {
      const payoutId = each.kind === 'pay' ? each.command.payoutId : null
      must(
        payoutId === null || tables.payouts.has(payoutId),
        'each command is taken in',
        () => `${payoutId} is lost`,
      )
    }
    this.checkDeadlines(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)
    this.#checkPublished()
  }

  #checkTransition(at: number): void {
    const { gateway, ledger } = this.#books
    const transition = ledger.tables.history[at]
    if (!transition) return
    const { payout, from, source } = transition
    const { payoutId, orderNo, state, version } = payout
    const last = this.#versions.get(payoutId) ?? 0
    must(version === last + 1, 'versions without gaps', () => `${payoutId} went from ${last} to ${version}`)
    this.#versions.set(payoutId, version)
    must(
      from === null || !ENDS.includes(from),
      'nothing leaves an end',
      () => `${payoutId} was ${from}, is ${state}`,
    )
    if ((state === 'paid' || state === 'failed') && source !== 'OPERATOR') {
      const word = `${orderNo} ${state === 'paid' ? 'success' : 'failed'}`
      must(
        gateway.said.has(word),
        "paid and failed only on the gateway's signed word, or a person's",
        () => `${payoutId} is ${state}, and the gateway said no such thing`,
      )
    }
    if (payout.reason === 'proved-absent') {
      const there = gateway.of(orderNo).some(({ late }) => !late)
      must(!there, 'proved absent only what the gateway does not have', () => `${payoutId} is there`)
    }
    if (state === 'submitting') this.#checkCovered()
  }

  /** What is claimed and not yet at the gateway is covered by what it has, but for what went off unforeseen since. */
  #checkCovered(): void {
    const { gateway, ledger } = this.#books
    let claimed = 0n
    for (const { state, orderNo, amount } of ledger.tables.payouts.values()) {
      const awaited = state === 'submitting' || state === 'unknown'
      if (awaited && gateway.of(orderNo).length === 0) claimed += amount + FEE
    }
    const unforeseen = gateway.unforeseen - ledger.tables.purse.unforeseen
    must(
      claimed <= gateway.available + unforeseen,
      'reserved is covered by the balance',
      () => `${claimed} paise are claimed, ${gateway.available} are there`,
    )
  }

  #checkBooks(): void {
    const { gateway, ledger } = this.#books
    for (const { payoutId, orderNo, state } of ledger.tables.payouts.values()) {
      const { times, kept } = paid(gateway, orderNo)
      must(times <= 1, 'paid at most once', () => `${payoutId} was paid ${times} times`)
      must(state !== 'paid' || times > 0, 'what is said paid was paid', () => `${payoutId} was not`)
      must(
        state !== 'failed' || kept === 0,
        'what is said failed was not paid and will not be',
        () => `${payoutId} was paid`,
      )
      must(
        (state !== 'cancelled' && state !== 'rejected') || orderNo === null || !gateway.seen.has(orderNo),
        'cancelled and rejected were never sent',
        () => `${payoutId} is ${state}, and the gateway saw it`,
      )
    }
  }

  #checkSums(): void {
    const { topic, ledger } = this.#books
    const asked = new Map<string, bigint>()
    for (const each of topic) {
      if (each.kind !== 'pay') continue
      const { payoutId, amount } = each.command
      if (!asked.has(payoutId)) asked.set(payoutId, amount)
    }
    const sums = { waiting: 0n, reserved: 0n, paid: 0n, released: 0n }
    let accepted = 0n
    for (const payoutId of this.#versions.keys()) accepted += asked.get(payoutId) ?? 0n
    for (const { payoutId, state, amount } of ledger.tables.payouts.values()) {
      const group = CLASSES[state]
      if (group) sums[group] += amount
      must(
        amount === asked.get(payoutId),
        'a payoutId stands for its first command',
        () => `${payoutId} is about ${amount} paise, asked for were ${asked.get(payoutId)}`,
      )
    }
    must(
      accepted === sums.waiting + sums.reserved + sums.paid + sums.released,
      'accepted = waiting + reserved + paid + released',
      () => `${accepted} ≠ ${Object.values(sums).join(' + ')} paise`,
    )
  }

  #checkPublished(): void {
    const { published, ledger } = this.#books
    const events = new Map<string, string[]>()
    const results = new Map<string, Set<string>>()
    for (const message of published) {
      const { payoutId, version, status } = read(message)
      if (message.topic === 'payout.events') {
        const ids = events.get(payoutId) ?? []
        if (version === ids.length + 1) ids.push(message.eventId)
        must(
          ids[version - 1] === message.eventId,
          'versions without gaps',
          () => `version ${version} of ${payoutId} was published behind version ${ids.length}`,
        )
        events.set(payoutId, ids)
      }
      if (message.topic === 'payout.results') {
        const ends = results.get(payoutId) ?? new Set()
        results.set(payoutId, ends.add(`${status} under ${message.eventId}`))
      }
    }
    for (const { payoutId, state, version } of ledger.tables.payouts.values()) {
      const told = events.get(payoutId)?.length ?? 0
      must(
        told === version,
        'versions without gaps',
        () => `${told} of ${version} events of ${payoutId} came out`,
      )
      const ends = [...(results.get(payoutId) ?? [])]
      const right = ENDS.includes(state)
        ? ends.length === 1 && ends[0]?.startsWith(state.toUpperCase())
        : ends.length === 0
      must(
        right === true,
        'each end is published under one event id',
        () => `${payoutId} is ${state}, published was ${ends.join(' and ') || 'nothing'}`,
      )
    }
  }
}

const read = ({ value }: Message): { payoutId: string; version: number; status?: string } =>
  JSON.parse(value.toString())

/** How often the gateway paid under one number, and how much of that was not given back. */
function paid(gateway: Gateway, orderNo: string | null): { times: number; kept: number } {
  let times = 0
  let kept = 0
  for (const order of gateway.orders) {
    if (order.mchOrderNo !== orderNo) continue
    times += order.timesPaid
    kept += order.timesPaid - (order.returned ? 1 : 0)
  }
  return { times, kept }
}

function must(holds: boolean, invariant: Invariant, detail: () => string): void {
  if (!holds) throw new Broken(invariant, detail())
}
