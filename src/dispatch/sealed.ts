import { type Ledger, storeDecisions } from '../ledger/ledger.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { become, change } from '../payout/transition.ts'
import { lockAwaitingKey } from './sql/sealed.ts'

/** Puts a payout aside, unsent, so that others go on. */
export function hold(payout: Payout, keyId: number): Decision {
  const held = become(payout, 'held', { reason: 'details-sealed', dueAt: payout.deadline })
  const note = `the bank details were sealed with key ${keyId}, and no key of this process opens them`
  return change(payout, held, 'VALIDATION', { note })
}

const BATCH = 500

/**
 * Queues again what was put aside: to be called when a process starts, with keys that others may have lacked.
 * Each payout once, so that it ends even while an older process puts some aside again. Returns how many.
 */
export async function releaseHeld(ledger: Ledger): Promise<number> {
  let count = 0
  let last = { merchantId: '', payoutId: '' }
  for (;;) {
    const held = await ledger.db.transaction('release held', async (tx) => {
      const batch = await tx.run(lockAwaitingKey, { ...last, limit: BATCH })
      await storeDecisions(tx, ledger, batch.map(release))
      return batch
    })
    last = held.at(-1) ?? last
    count += held.length
    if (held.length < BATCH) return count
  }
}

function release(payout: Payout): Decision {
  const queued = become(payout, 'queued', { ready: true, dueAt: payout.deadline })
  return change(payout, queued, 'COMMAND', { note: 'payoutd started again, and its keys are tried' })
}
