import { crc32 } from 'node:zlib'
import type { EvidenceSource } from '../domain/evidence.ts'
import type { Fault } from '../domain/fault.ts'
import { eventId, payoutKey, reversalEventId } from '../domain/identifiers.ts'
import type { Instant } from '../domain/instant.ts'
import type { Anomaly, Payout } from '../domain/payout/payout.ts'
import { isEnd, type State } from '../domain/payout/states.ts'
import type { Topics } from './topics.ts'

/** A message that waits for the relay: its bytes are final. */
export type OutboxRow = {
  shard: number
  topic: string
  key: string
  eventId: string
  /** The full name of the Avro record, or a word for other content. */
  type: string
  value: Buffer
  /** Added to the CloudEvents headers that every message gets; null: only the `traceparent` of the payout, if it has one. */
  headers: Record<string, string> | null
  /** Null: it is not about a payout. */
  about: { merchantId: string; payoutId: string | null } | null
}

/** Encodes the record in Confluent wire format; the names are those of `schemas/`. */
export type Encode = (
  type: 'PayoutEvent' | 'PayoutResult' | 'PayoutReversed' | 'PayoutAnomaly' | 'PayinResult',
  record: object,
) => Buffer

/**
 * The key of a message about one payout, payin or batch of a merchant: it decides only the partition, and so the order. Both
 * ids may contain a colon, so payouts of two merchants may share a key; the message itself names its payout.
 */
export const topicKey = (merchantId: string, id: string): string => `${merchantId}:${id}`

/** Messages of one key go through one shard, in order. The number of shards must not change while messages are in flight. */
export const SHARDS = 4
export const shardOf = (key: string): number => crc32(key) % SHARDS

/** One transition of a payout, with what its two messages need. */
export type Transition = {
  payout: Payout
  from: State | null
  source: EvidenceSource
  faults: Fault[]
  at: Instant
}

/** Every transition is published as an event; an end also as a result. */
export function messagesAbout(transition: Transition, topics: Topics, encode: Encode): OutboxRow[] {
  const { payout } = transition
  const key = payoutKey(payout)
  const row = {
    shard: shardOf(key),
    key,
    eventId: eventId(payout.merchantId, payout.payoutId, payout.version),
    headers: null,
    about: payout,
  }
  const event = {
    ...row,
    topic: topics.events,
    type: 'in.payoutd.PayoutEvent',
    value: encode('PayoutEvent', eventRecord(transition)),
  }
  if (!isEnd(payout.state)) return [event]
  const result = {
    ...row,
    topic: topics.results,
    type: 'in.payoutd.PayoutResult',
    value: encode('PayoutResult', resultRecord(transition)),
  }
  return [event, result]
}

const common = ({ payout, source, at }: Pick<Transition, 'payout' | 'source' | 'at'>) => ({
  payoutId: payout.payoutId,
  merchantId: payout.merchantId,
  batchId: payout.batchId,
  mchOrderNo: payout.orderNo,
  version: payout.version,
  evidence: source,
  amount: payout.amount,
  currency: payout.currency,
  occurredAt: at,
})

const eventRecord = (transition: Transition) => ({
  ...common(transition),
  fromState: transition.from?.toUpperCase() ?? null,
  toState: transition.payout.state.toUpperCase(),
  reason: transition.payout.reason,
})

const resultRecord = (transition: Transition) => ({
  ...common(transition),
  agentpayOrderId: transition.payout.agentpayOrderId,
  status: transition.payout.state.toUpperCase(),
  fee: transition.payout.fee,
  utr: transition.payout.utr,
  errors: errorsOf(transition),
})

/** A rejected command lists its faults; a failed or cancelled payout gives its reason in the same form. */
function errorsOf({ payout, source, faults }: Transition): Fault[] {
  if (payout.state === 'failed') {
    const rule = source === 'OPERATOR' ? 'OPERATOR' : 'GATEWAY'
    return [{ field: '', rule, message: payout.reason ?? '', found: '' }]
  }
  if (payout.state === 'cancelled') {
    return [
      {
        field: '',
        rule: payout.reason === 'expired' ? 'EXPIRED' : 'CANCELLED',
        message: payout.reason ?? '',
        found: '',
      },
    ]
  }
  return faults
}

/** A paid transfer that came back, confirmed by a person. */
export type Reversal = {
  payout: Payout
  anomalyId: string
  reason: string
  paidAt: Instant | null
  at: Instant
}

/** Published next to the result, on its topic and in its order; it makes no version. */
export function reversalMessage(reversal: Reversal, topics: Topics, encode: Encode): OutboxRow {
  const { payout, anomalyId, reason, paidAt, at } = reversal
  const key = payoutKey(payout)
  return {
    shard: shardOf(key),
    topic: topics.results,
    key,
    eventId: reversalEventId(payout.merchantId, payout.payoutId),
    type: 'in.payoutd.PayoutReversed',
    value: encode('PayoutReversed', {
      ...common({ payout, source: 'OPERATOR', at }),
      agentpayOrderId: payout.agentpayOrderId,
      utr: payout.utr,
      anomalyId,
      reason,
      paidAt,
    }),
    headers: null,
    about: payout,
  }
}

/** `id` names this sighting of the anomaly; it is also its key in the ledger. */
export function messageOf(
  anomaly: Anomaly,
  id: string,
  at: Instant,
  topics: Topics,
  encode: Encode,
): OutboxRow {
  const key = topicKey(anomaly.merchantId, anomaly.payoutId ?? anomaly.orderNo ?? '')
  return {
    shard: shardOf(key),
    topic: topics.anomalies,
    key,
    eventId: id,
    type: 'in.payoutd.PayoutAnomaly',
    value: encode('PayoutAnomaly', {
      merchantId: anomaly.merchantId,
      payoutId: anomaly.payoutId,
      mchOrderNo: anomaly.orderNo,
      kind: anomaly.kind,
      detail: anomaly.detail,
      fingerprints: anomaly.fingerprints ?? null,
      evidence: anomaly.source,
      occurredAt: at,
    }),
    headers: null,
    about: anomaly,
  }
}
