import type { Logger } from '../../platform/log.ts'
import type { Ledger } from '../ledger.ts'
import { forgetLosses, provenLosses, raiseFence, unfencedMerchants } from '../sql/fence.ts'

/** Who raises a fence that no operator asked for. */
export const BY_PAYOUTD = 'payoutd'

/** `merchantIds`: in the settings. */
type LossDeps = { ledger: Ledger; log: Logger; merchantIds: readonly string[] }

/**
 * If it is proven that the ledger was set back, fences every merchant of the ledger and the settings: they share the ledger, so as
 * much of theirs is lost. Each by itself, so that one whose row is held, or another process that does the same, keeps no other
 * waiting. Throws if some are left; the next claim of any process calls it again, and takes nothing before all are fenced.
 */
export async function fenceForLosses({ ledger: { db }, log, merchantIds }: LossDeps): Promise<void> {
  const losses = await db.run(provenLosses, {})
  const [loss] = losses
  if (!loss) return
  const failures: unknown[] = []
  for (const { merchantId } of await db.run(unfencedMerchants, { merchantIds: [...merchantIds] })) {
    const { reason } = loss
    await db.run(raiseFence, { merchantId, by: BY_PAYOUTD, reason, feeEstimate: 0n }).then(
      () => log.error({ merchantId, reason }, FENCED),
      (error: unknown) => failures.push(error),
    )
  }
  if (failures.length > 0) throw failures[0]
  await db.run(forgetLosses, { positions: losses.map(({ position }) => position) })
}

export const FENCED =
  'payoutd has fenced the merchant and sends nothing for it: the ledger lacks something that was sent. ' +
  'Run payoutd recover, which queries the gateway about every open payout'
