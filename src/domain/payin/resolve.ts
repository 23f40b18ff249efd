import type { Instant } from '../instant.ts'
import { scrub, words } from '../mask.ts'
import type { Decided } from '../payout/resolve.ts'
import type { Payin, PayinChange } from './payin.ts'
import { become } from './transition.ts'

/** What a person decides about a payin in review. `utr`: the bank's reference, which proves that the money came. */
export type PayinResolution = { kind: 'paid'; utr: string } | { kind: 'failed' }

/** What a person's decision does to a payin; null: nothing, because only a payin in review waits for a person. */
export function resolve(
  payin: Payin,
  resolution: PayinResolution,
  decided: Decided,
  now: Instant,
): PayinChange | null {
  if (payin.state !== 'review') return null
  const [after, what] =
    resolution.kind === 'paid'
      ? [become(payin, 'paid', now, { utr: resolution.utr }), `paid, UTR ${resolution.utr}`]
      : [become(payin, 'failed', now, { reason: scrub(decided.reason) }), 'failed']
  return { before: payin, after, source: 'OPERATOR', exchange: { note: `${words(decided)} (${what})` } }
}
