import { recordAct } from '../ledger/acts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { BY_PAYOUTD } from '../ledger/store-evidence.ts'
import type { Decided } from '../payout/resolve.ts'
import { cancelRequested } from './recovery.ts'
import { fenceOf, heardOfLoss, lockFence, takeFenceDown } from './sql/fence.ts'

/** `kept`: why the fence stays. */
export type Lowered = { merchantId: string; kept: string | null }

/**
 * Takes the fence of a merchant down on a person's word that the server which took over has every commit. Only one that
 * payoutd raised, and only where nothing was heard of since that the ledger lacks.
 */
export function lowerFence(merchantId: string, { by, reason }: Decided, ledger: Ledger): Promise<Lowered> {
  return ledger.db.transaction('lower fence', async (tx) => {
    await tx.run(lockFence, { merchantId })
    const [fence] = await tx.run(fenceOf, { merchantId })
    if (!fence) return { merchantId, kept: 'it is not fenced' }
    if (fence.by !== BY_PAYOUTD) return { merchantId, kept: `${fence.by} raised the fence (${fence.reason})` }
    const [heard] = await tx.run(heardOfLoss, { merchantId, since: fence.since })
    if (heard) return { merchantId, kept: `the ledger did lose something: ${heard.detail}` }
    await cancelRequested(tx, fence, `${by}: ${reason} (the ledger lost nothing)`, ledger)
    await tx.run(takeFenceDown, { merchantId })
    const change = { subjects: [], before: fence, after: null }
    await recordAct(tx, { by, reason, command: 'recover --nothing-lost', merchantId, ...change })
    return { merchantId, kept: null }
  })
}
