import type { Instant } from '../domain/instant.ts'
import type { PayinChange } from '../domain/payin/payin.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { type OutboxRow, shardOf, topicKey } from '../messages/messages.ts'
import { payinEventId } from './identifiers.ts'

/** The message about the end that a change reached. */
export function payinResult({ after, source }: PayinChange, at: Instant, ledger: Ledger): OutboxRow {
  const { merchantId, payinId, payOrderId, amount, currency, utr, paidAt, reason, version, traceparent } =
    after
  const key = topicKey(merchantId, payinId)
  return {
    shard: shardOf(key),
    topic: ledger.topics.payinResults,
    key,
    eventId: payinEventId(merchantId, payinId, version),
    type: 'in.payoutd.PayinResult',
    value: ledger.encode('PayinResult', {
      payinId,
      merchantId,
      payOrderId,
      status: after.state.toUpperCase(),
      amount,
      currency,
      utr,
      paidAt,
      reason,
      evidence: source,
      version,
      occurredAt: at,
    }),
    headers: traceparent === null ? null : { traceparent },
    about: null,
  }
}
