import { words } from '../../domain/mask.ts'
import type { Decided } from '../../domain/payout/resolve.ts'
import { recordAct } from '../../ledger/acts.ts'
import { BY_PAYOUTD } from '../../ledger/evidence/proven-losses.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Fence } from '../../ledger/sql/fence.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { cancelRequested } from './cancel-requested.ts'
import { fenceOf, hasBegun, isUnused, lockFence, shownLoss, takeFenceDown } from './sql/fence.ts'
import { deleteList } from './sql/list.ts'
import { isOfNewcomers, lossFound } from './sql/server-identity.ts'

/** `kept`: why the fence stays. */
export type Lowered = { merchantId: string; kept: string | null }

/**
 * Takes the fence of a merchant down when a person vouches that the server which took over has every commit. It requires that
 * payoutd raised the fence, for one step of the server's history and nothing else; that nothing has shown since that the ledger
 * lacks anything of any merchant; and that nobody has begun to recover this one. `lacking`: what `publishedBeyond` found, which
 * shows a loss. `isNamed`: the person vouches for this merchant alone. That is enough for a recovery that cannot end, because
 * payoutd knows no order to ask the gateway about, and for a ledger beside topics where another one published before, which is no
 * failover.
 */
export function lowerFence(
  merchantId: string,
  { by, reason, isNamed = false, lacking = null }: Decided & { isNamed?: boolean; lacking?: string | null },
  ledger: Ledger,
): Promise<Lowered> {
  return ledger.db.transaction('lower fence', async (tx) => {
    await tx.run(lockFence, { merchantId })
    const [fence] = await tx.run(fenceOf, { merchantId })
    if (!fence) return { merchantId, kept: 'it is not fenced' }
    const unused = (await tx.run(isUnused, { merchantId })).length > 0
    const shown = unused && isNamed ? null : await whyItStays(tx, fence, isNamed)
    const kept = shown ?? didLose(lacking)
    if (kept !== null) return { merchantId, kept: unused ? `${kept}; ${NAME_IT}` : kept }
    const subjects = await cancelRequested(tx, merchantId, words({ by, reason }), ledger)
    await tx.run(deleteList, { merchantId })
    await tx.run(takeFenceDown, { merchantId })
    const change = { subjects, before: fence, after: null }
    await recordAct(tx, { by, reason, command: 'recover --nothing-lost', merchantId, ...change })
    return { merchantId, kept: null }
  })
}

async function whyItStays(
  tx: Transaction,
  { merchantId, by, reason, since, oneStep }: Fence,
  isNamed: boolean,
): Promise<string | null> {
  if (by !== BY_PAYOUTD) return `${by} raised the fence (${reason})`
  const isNew = (await tx.run(isOfNewcomers, { reason })).length > 0
  if (isNew && !isNamed) return `${reason}; ${NAME_IT}`
  const [shown] = await tx.run(shownLoss, { merchantId, since })
  if (shown) return `the ledger lost something about merchant ${shown.merchantId}: ${shown.detail}`
  if ((await tx.run(lossFound, { since })).length > 0) return DID_LOSE
  if ((await tx.run(hasBegun, { merchantId })).length > 0) return HAS_BEGUN
  return oneStep || isNew ? null : `it is fenced for more than one failover (${reason}), ${NOT_ONE}`
}

const didLose = (lacking: string | null): string | null =>
  lacking && `the ledger lost something (${lacking}): run payoutd recover`

const NOT_ONE = 'and your guarantee covers only the last one: run payoutd recover'

const DID_LOSE =
  'since then payoutd recover has found that the ledger lost something: run payoutd recover for this merchant, too'

const HAS_BEGUN =
  'a payoutd recover of this merchant has begun and not finished: run it again, and it removes the fence'

const NAME_IT =
  'if you know that nothing was ever sent for this merchant, run payoutd recover --nothing-lost --merchant for it alone'
