import type { Fault } from '../fault.ts'
import { type Scrubbed, scrub } from '../mask.ts'
import type { Payout } from '../payout/payout.ts'

/** Why a command was rejected, or waits to be. */
export const FAULTS = 'faults'

/** Its command is refused once a recovery has shown that nothing of it was sent. */
export const awaitsRefusal = ({ state, reason }: Pick<Payout, 'state' | 'reason'>): boolean =>
  state === 'held' && reason === FAULTS

/**
 * What a refused command begins as while its merchant is fenced: another ledger may have taken it in by other rules, sent it
 * and told others so. It is never sent, and nobody is told of it (version 0) until the recovery knows.
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
