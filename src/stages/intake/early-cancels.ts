import { IN_DOUBT } from '../../domain/payout/apply-evidence.ts'
import { cancel } from '../../domain/payout/cancel.ts'
import { neverSent } from '../../domain/payout/ledger-lacks-attempt.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { BESIDES } from '../../domain/payout/reported-elsewhere.ts'
import { BY_PAYOUTD } from '../../ledger/evidence/proven-losses.ts'
import { fencedBeforeCancels, keyOf, type Ledger, lockPayouts, storeDecisions } from '../../ledger/ledger.ts'
import { CANCELS_KEPT_DAYS, cancelledBatches, rememberCancels } from '../../ledger/sql/cancels.ts'
import { askAnew, raiseFence } from '../../ledger/sql/fence.ts'
import { mapKey } from '../../platform/map-key.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import type { CancelRequest } from './parse-command.ts'
import { reportedOrders, takeEarlyCancels } from './sql/early-cancels.ts'

const merchantsOf = (all: readonly { merchantId: string }[]): string[] => [
  ...new Set(all.map(({ merchantId }) => merchantId)),
]

/** Cancels payouts. Remembers the cancellation of an unknown payout, and applies it when that payout's command comes. */
export async function storeCancels(
  tx: Transaction,
  ledger: Ledger,
  cancels: readonly CancelRequest[],
): Promise<void> {
  if (cancels.length === 0) return
  const fenced = await fencedBeforeCancels(tx, merchantsOf(cancels))
  const payouts = new Map((await lockPayouts(tx, cancels)).map((payout) => [keyOf(payout), payout]))
  const early = cancels.filter((each) => !payouts.has(keyOf(each)))
  if (early.length > 0) await tx.run(rememberCancels, { cancels: early, source: 'COMMAND' })
  const decisions = cancels.map((each): Decision => {
    const key = keyOf(each)
    const payout = payouts.get(key)
    if (!payout) return nobodyKnows(each)
    const decision = cancel(payout, 'COMMAND', each.why, { fenced: fenced.has(each.merchantId) })
    if ('change' in decision) payouts.set(key, decision.change.after)
    return decision
  })
  await storeDecisions(tx, ledger, decisions)
}

const nobodyKnows = ({ merchantId, payoutId }: CancelRequest): Decision => ({
  anomaly: {
    merchantId,
    payoutId,
    orderNo: null,
    kind: 'cancel-of-unknown-payout',
    detail:
      `a cancellation came for a payoutId that nobody has requested: payoutd keeps it for ${CANCELS_KEPT_DAYS} days, and ` +
      'cancels the payout if its request comes',
    source: 'COMMAND',
    exchange: null,
  },
})

/** By order number. */
type Reported = ReadonlyMap<string, 'order' | 'order-besides'>

/**
 * Fences the merchants of orders that the gateway reported before their commands came: a ledger that was set back since had
 * sent them. Call it before you lock payouts. Returns the order numbers, with what the reports show.
 */
export async function fenceReported(tx: Transaction, payouts: readonly Payout[]): Promise<Reported> {
  const but = IN_DOUBT['of-a-request'].kind
  const reported = await tx.run(reportedOrders, { orders: payouts, but, besides: BESIDES })
  const reason = 'the ledger was set back: the gateway reported an order before its command came'
  for (const merchantId of [...new Set(reported.map(({ merchantId }) => merchantId))].sort()) {
    await tx.run(raiseFence, { merchantId, by: BY_PAYOUTD, reason, feeEstimate: 0n })
    await tx.run(askAnew, { merchantId, payoutIds: [null] })
  }
  return new Map(reported.map(({ orderNo, isBesides }) => [orderNo, isBesides ? 'order-besides' : 'order']))
}

/**
 * Applies to these new payouts what came before their commands: the gateway's report, and then a cancellation of them or of
 * their batch.
 */
export async function applyEarlyCancels(
  tx: Transaction,
  payouts: readonly Payout[],
  reported: Reported,
): Promise<Decision[]> {
  const cancels = new Map(
    (await tx.run(takeEarlyCancels, { fresh: payouts })).map((each) => [keyOf(each), each]),
  )
  const batches = new Map(
    (await tx.run(cancelledBatches, { batches: payouts })).map(({ merchantId, batchId, why }) => [
      mapKey(merchantId, batchId),
      why,
    ]),
  )
  if (cancels.size === 0 && batches.size === 0 && reported.size === 0) return []
  const fenced = await fencedBeforeCancels(tx, merchantsOf(payouts))
  return payouts.flatMap((payout) => {
    const decisions: Decision[] = []
    let after = payout
    const shows = payout.orderNo === null ? undefined : reported.get(payout.orderNo)
    if (shows) {
      const sent = neverSent(
        payout,
        'COMMAND',
        'the gateway reported this order before its command came',
        null,
        shows,
      )
      if ('change' in sent) after = sent.change.after
      decisions.push(sent)
    }
    const { merchantId, batchId } = payout
    const terms = { fenced: fenced.has(merchantId) }
    const early = cancels.get(keyOf(payout))
    const whyBatch = batchId === null ? undefined : batches.get(mapKey(merchantId, batchId))
    if (early) decisions.push(cancel(after, early.source, early.why, terms))
    else if (whyBatch !== undefined) decisions.push(cancel(after, 'OPERATOR', whyBatch, terms))
    return decisions
  })
}
