import type { Instant } from '../instant.ts'
import { scrub, words } from '../mask.ts'
import type { Decided } from '../payout/resolve.ts'
import { ORDER_BESIDES } from './apply-evidence.ts'
import type { Payin, PayinChange } from './payin.ts'
import { become } from './transition.ts'

/** What a person decides about a payin in review. `utr`: the bank's reference, which proves that the money came. */
export type PayinResolution = { kind: 'paid'; utr: string } | { kind: 'failed' }

/**
 * What a person's decision does to a payin; null: nothing, because only a payin in review waits for a person. One that ended unpaid
 * can be paid late by a person's word too, as by the gateway's.
 */
export function resolve(
  payin: Payin,
  resolution: PayinResolution,
  decided: Decided,
  now: Instant,
): PayinChange | null {
  const isLate = resolution.kind === 'paid' && (payin.state === 'failed' || payin.state === 'expired')
  if (payin.state !== 'review' && !isLate) return null
  // The order that is known may be another one than was paid.
  const known = payin.reason === ORDER_BESIDES || isLate ? { payOrderId: null } : {}
  const [after, what] =
    resolution.kind === 'paid'
      ? [become(payin, 'paid', now, { utr: resolution.utr, ...known }), `paid, UTR ${resolution.utr}`]
      : [become(payin, 'failed', now, { reason: scrub(decided.reason) }), 'failed']
  return { before: payin, after, source: 'OPERATOR', exchange: { note: `${words(decided)} (${what})` } }
}
