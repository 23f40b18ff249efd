import { json } from '../ledger/json.ts'
import {
  keyOf,
  type Ledger,
  lockPayouts,
  type PayoutKey,
  storeDecisions,
  storePayouts,
} from '../ledger/ledger.ts'
import { topicKey } from '../ledger/messages.ts'
import { tellHistory } from '../ledger/sql/store.ts'
import type { EvidenceSource } from '../payout/evidence.ts'
import { paise } from '../payout/money.ts'
import { type Published, type PublishedEnd, type PublishedTransition, recall } from '../payout/recall.ts'
import { type End, isEnd, type State } from '../payout/states.ts'
import type { Codec } from '../platform/kafka/codec.ts'
import type { IncomingRecord } from '../platform/kafka/records.ts'
import { keepRecalled, openVersions, recordAttempts } from './sql/lost.ts'

export type LostDeps = {
  ledger: Ledger
  codec: Codec
  /** Reads all of a topic, one record after the other. */
  readTopic: (topic: string, onRecord: (record: IncomingRecord) => Promise<void>) => Promise<void>
}

/** What the records of schemas/PayoutEvent.avsc and schemas/PayoutResult.avsc have in common; states in capitals. */
type Told = PayoutKey & {
  version: number
  evidence: EvidenceSource
  mchOrderNo: string | null
  amount: bigint
  currency: string
}
type Event = Told & { fromState: string | null; toState: string; reason: string | null }
type Result = Told & {
  status: string
  agentpayOrderId: string | null
  fee: bigint | null
  utr: string | null
  errors: { message: string }[]
}

/** Of one open payout: where the ledger stands, and what was published of it. */
type Open = PayoutKey & {
  version: number
  attempt: number
  transitions: PublishedTransition[]
  submitted: Set<number>
  end: PublishedEnd | null
}

/**
 * Gives the open payouts of fenced merchants the transitions back that the database lost and Kafka did not (see
 * `recall`), so that no event id stands for two things. No end is published again: one whose result is in no topic
 * is told when the gateway has been asked. Returns how many payouts had lost something.
 */
export async function recallPublished(merchantIds: readonly string[], deps: LostDeps): Promise<number> {
  const { ledger, codec, readTopic } = deps
  const open = new Map<string, Open>()
  const keys = new Set<string>()
  for (const merchantId of merchantIds) {
    for await (const each of openOf(merchantId, ledger)) {
      const nothing = { transitions: [], submitted: new Set<number>(), end: null }
      open.set(keyOf({ merchantId, ...each }), { merchantId, ...each, ...nothing })
      keys.add(topicKey(merchantId, each.payoutId))
    }
  }
  if (open.size === 0) return 0
  for (const topic of [ledger.topics.events, ledger.topics.results]) {
    await readTopic(topic, async ({ key, value }) => {
      if (!value || !keys.has(String(key))) return
      const decoded = await codec.decode(value)
      if (decoded.kind === 'undecodable')
        throw new Error(`${topic} holds what cannot be read: ${decoded.detail}`)
      const payout = open.get(keyOf(decoded.value as PayoutKey))
      if (!payout) return
      if (decoded.name === 'in.payoutd.PayoutEvent') noteEvent(payout, decoded.value as Event)
      else if (decoded.name === 'in.payoutd.PayoutResult') noteResult(payout, decoded.value as Result)
    })
  }
  const lost = [...open.values()].filter(hasLost)
  for (const each of lost) await recallOne(each, ledger)
  return lost.length
}

const PAGE = 10_000

async function* openOf(merchantId: string, { db }: Ledger) {
  for (let after = ''; ; ) {
    const page = await db.run(openVersions, { merchantId, after, limit: PAGE })
    yield* page
    const last = page.at(-1)
    if (!last) return
    after = last.payoutId
  }
}

function noteEvent(payout: Open, told: Event): void {
  const { version, reason, evidence } = told
  const toState = told.toState.toLowerCase() as State
  const fromState = told.fromState === null ? null : (told.fromState.toLowerCase() as State)
  if (version >= payout.version) payout.transitions.push({ version, fromState, toState, reason, evidence })
  if (toState === 'submitting') payout.submitted.add(version)
  if (isEnd(toState)) {
    const details = { agentpayOrderId: null, fee: null, utr: null, reason, told: false }
    noteEnd(payout, { ...endOf(told, toState), ...details })
  }
}

function noteResult(payout: Open, told: Result): void {
  const { agentpayOrderId, utr, errors } = told
  const fee = told.fee === null ? null : paise(told.fee)
  const details = { agentpayOrderId, fee, utr, reason: errors[0]?.message ?? null, told: true }
  noteEnd(payout, { ...endOf(told, told.status.toLowerCase() as End), ...details })
}

const endOf = ({ version, evidence, mchOrderNo, amount, currency }: Told, status: End) => ({
  ...{ status, version, evidence, orderNo: mchOrderNo, currency },
  amount: paise(amount),
})

/** The latest, and of the same one the result, which tells more than the event. */
function noteEnd(payout: Open, end: PublishedEnd): void {
  const known = payout.end
  if (known === null || end.version > known.version || (end.version === known.version && end.told))
    payout.end = end
}

const hasLost = ({ version, attempt, transitions, submitted, end }: Open): boolean =>
  end !== null || submitted.size > attempt || transitions.some((each) => each.version > version)

function recallOne(
  { merchantId, payoutId, ...published }: PayoutKey & Published,
  ledger: Ledger,
): Promise<void> {
  const key = { merchantId, payoutId }
  return ledger.db.transaction('recall published', async (tx) => {
    const [payout] = await lockPayouts(tx, [key])
    if (!payout || isEnd(payout.state)) return
    const { lost, after, sent, doubt } = recall(payout, published)
    await tx.run(tellHistory, {
      merchantIds: lost.map(() => merchantId),
      payoutIds: lost.map(() => payoutId),
      versions: lost.map(({ version }) => version),
      fromStates: lost.map(({ fromState }) => fromState),
      toStates: lost.map(({ toState }) => toState),
      reasons: lost.map(({ reason }) => reason),
      sources: lost.map(({ evidence }) => evidence),
      exchanges: lost.map(() => json(READ_BACK)),
    })
    await storePayouts(tx, [after])
    const attempts = { ...key, orderNo: payout.orderNo, first: payout.attempt + 1, last: after.attempt }
    await tx.run(recordAttempts, attempts)
    const { end } = published
    const untold = isEnd(after.state) && end?.told === false ? end.evidence : null
    await tx.run(keepRecalled, { ...key, sent, untold })
    if (doubt) await storeDecisions(tx, ledger, [doubt])
  })
}

const READ_BACK = { note: 'read back from what was published, after a restore' }
