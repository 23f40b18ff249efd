import type { Mood, Purse } from '../../src/dispatch/pace.ts'
import { messagesAbout, type OutboxRow, type Transition } from '../../src/ledger/messages.ts'
import { topicNames } from '../../src/ledger/topics.ts'
import type { Instant } from '../../src/payout/instant.ts'
import { ZERO } from '../../src/payout/money.ts'
import type { Anomaly, Decision, Payout } from '../../src/payout/payout.ts'
import { FEE } from './rules.ts'

export type Message = OutboxRow & { position: number }
/** `unforeseen` is what the gateway's balance had lost unforeseen when it was asked: only the oracle looks at it. */
export type PurseRow = Purse & Mood & { unforeseen: bigint }

/** Wrong ones ask in the wrong place, where no order is ever found. */
export type Settings = 'right' | 'wrong'

export type Tables = {
  payouts: Map<string, Payout>
  /** What each payoutId stands for. */
  fingerprints: Map<string, Buffer>
  history: readonly Transition[]
  anomalies: readonly Anomaly[]
  outbox: readonly Message[]
  positions: number
  purse: PurseRow
  /** Those with which the merchant was last opened. */
  settings: Settings
  nextOffset: number
  relay: { owner: string; leaseUntil: Instant }
}

/** The connection ended while a transaction was being committed: nobody can say whether it was. */
export class ConnectionCut extends Error {}

const TOPICS = topicNames()
/** Not Avro, so that it reads back without a registry. */
const encode = (_type: string, record: object): Buffer =>
  Buffer.from(JSON.stringify(record, (_key, value) => (typeof value === 'bigint' ? String(value) : value)))

/** The ledger in memory. Its transactions are atomic and come one after the other. */
export class Ledger {
  tables: Tables
  /** What becomes of the next transaction. */
  cut: 'before the commit' | 'after the commit' | null = null

  readonly #onCommit: () => void

  constructor(goodAnswers: number, onCommit: () => void) {
    this.#onCommit = onCommit
    this.tables = {
      payouts: new Map(),
      fingerprints: new Map(),
      history: [],
      anomalies: [],
      outbox: [],
      positions: 0,
      purse: { ...NEW_PURSE, ramp: goodAnswers },
      settings: 'right',
      nextOffset: 0,
      relay: { owner: '', leaseUntil: Number.NEGATIVE_INFINITY },
    }
  }

  /** Throws `ConnectionCut` where the scheduler wants it. */
  transaction<T>(work: (tables: Tables) => T): T {
    const { payouts, fingerprints } = this.tables
    const draft = { ...this.tables, payouts: new Map(payouts), fingerprints: new Map(fingerprints) }
    const result = work(draft)
    const cut = this.cut
    this.cut = null
    if (cut !== 'before the commit') {
      this.tables = draft
      this.#onCommit()
    }
    if (cut !== null) throw new ConnectionCut(cut)
    return result
  }
}

/** State, history and outbox together, as `storeDecisions` of the product does it. */
export function store(tables: Tables, decisions: readonly Decision[], at: Instant): void {
  for (const decision of decisions) {
    if ('anomaly' in decision) tables.anomalies = [...tables.anomalies, decision.anomaly]
    if (!('change' in decision)) continue
    const { before, after, source } = decision.change
    tables.payouts.set(after.payoutId, after)
    if (after.version > before.version)
      tell(tables, { payout: after, from: before.state, source, faults: [], at })
  }
}

export function tell(tables: Tables, transition: Transition): void {
  tables.history = [...tables.history, transition]
  const messages = messagesAbout(transition, TOPICS, encode)
  tables.outbox = [
    ...tables.outbox,
    ...messages.map((message, i) => ({ ...message, position: tables.positions + i })),
  ]
  tables.positions += messages.length
}

/** A merchant whose settings are new: it begins with a canary and an unknown balance. */
export const NEW_PURSE: PurseRow = {
  pausedReason: null,
  recoveringSince: null,
  available: null,
  snapshotAt: null,
  snapshotInDoubt: ZERO,
  snapshotClaimed: ZERO,
  claimedTotal: ZERO,
  feeEstimate: FEE,
  rateNext: null,
  ramp: 0,
  badRun: 0,
  circuitOpened: 0,
  circuitOpenUntil: null,
  circuitReason: null,
  unforeseen: 0n,
}
