/** The states of docs/design.md. The last four are ends: nothing leaves them. */
export const STATES = [
  'held',
  'queued',
  'submitting',
  'unknown',
  'processing',
  'review',
  'paid',
  'failed',
  'rejected',
  'cancelled',
] as const

export type State = (typeof STATES)[number]
export type End = 'paid' | 'failed' | 'rejected' | 'cancelled'

const LEAVES_TO: Record<State, readonly State[]> = {
  held: ['held', 'queued', 'cancelled', 'rejected', 'review'],
  queued: ['submitting', 'held', 'cancelled', 'review'],
  submitting: ['processing', 'paid', 'failed', 'queued', 'unknown', 'cancelled', 'review'],
  unknown: ['processing', 'paid', 'failed', 'queued', 'cancelled', 'review'],
  processing: ['paid', 'failed', 'review'],
  review: ['processing', 'paid', 'failed', 'queued'],
  paid: [],
  failed: [],
  rejected: [],
  cancelled: [],
}

/** Where evidence can also move a waiting payout, once the gateway may have one of its attempts. */
const AFTER_AN_ATTEMPT: readonly State[] = ['processing', 'paid', 'failed']

export const isEnd = (state: State): state is End => LEAVES_TO[state].length === 0

/** It ended, and not as paid. The gateway may say otherwise later. */
export const endedUnpaid = (state: State): state is Exclude<End, 'paid'> => isEnd(state) && state !== 'paid'

/**
 * Whether a payout with `attempts` attempts so far may go from one state to another. `neverSent`: no byte of them left; only
 * such a payout can be cancelled. A payout with an attempt cannot be rejected.
 */
export function mayMove(from: State, to: State, attempts: number, neverSent = attempts === 0): boolean {
  if (to === 'cancelled' && !neverSent) return false
  if (to === 'rejected' && attempts > 0) return false
  const waiting = from === 'held' || from === 'queued'
  if (waiting && attempts > 0 && AFTER_AN_ATTEMPT.includes(to)) return true
  return LEAVES_TO[from].includes(to)
}
