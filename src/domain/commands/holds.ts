import type { Instant } from '../instant.ts'
import type { Scrubbed } from '../mask.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { become, change } from '../payout/transition.ts'

/** Why a payout waits until a person releases it. If several apply, the first in this order becomes its reason. */
export const HOLD_REASONS = ['duplicate', 'duplicate-file', 'beneficiary-changed'] as const

export type HoldReason = (typeof HOLD_REASONS)[number]

export const isHoldReason = (reason: string | null): reason is HoldReason =>
  HOLD_REASONS.some((each) => each === reason)

export const awaitsRelease = ({ state, reason }: Pick<Payout, 'state' | 'reason'>): boolean =>
  state === 'held' && isHoldReason(reason)

/**
 * What a person's release does: it queues the payout, or holds it until `paysAt` if that is still ahead. It does not change
 * a payout that waits for no release, is to be cancelled, or is past its deadline.
 */
export function release(payout: Payout, paysAt: Instant, why: Scrubbed, now: Instant): Decision {
  if (!awaitsRelease(payout) || payout.cancelRequest !== null || now >= payout.deadline)
    return { nothing: true }
  const after =
    paysAt > now
      ? become(payout, 'held', { reason: 'schedule', dueAt: paysAt })
      : become(payout, 'queued', { ready: true, dueAt: payout.deadline })
  return change(payout, after, 'OPERATOR', { note: why })
}
