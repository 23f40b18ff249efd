import type { Fault } from '../fault.ts'
import { type Scrubbed, scrub } from '../mask.ts'
import type { Payout } from '../payout/payout.ts'

/** Why a command was rejected, or waits to be rejected. */
export const FAULTS = 'faults'

/** payoutd refuses its command once a recovery has shown that none of its attempts was sent. */
export const awaitsRefusal = ({ state, reason }: Pick<Payout, 'state' | 'reason'>): boolean =>
  state === 'held' && reason === FAULTS

/**
 * How a refused command begins while its merchant is fenced: another ledger may have accepted it by other rules, sent it and
 * published that. payoutd never sends it, and publishes nothing about it (version 0) until the recovery has decided.
 */
export const heldRefused = (payout: Payout, faults: readonly Fault[]): Payout => ({
  ...payout,
  state: 'held',
  reason: FAULTS,
  version: 0,
  cancelRequest: refusalInWords(faults),
  ready: false,
  dueAt: payout.deadline,
})

const refusalInWords = (faults: readonly Fault[]): Scrubbed =>
  scrub(`its command is refused: ${faults.map(({ field, message }) => `${field} ${message}`).join('; ')}`)
