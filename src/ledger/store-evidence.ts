import { NEVER_SENT } from '../payout/never-sent.ts'
import type { Decision } from '../payout/payout.ts'
import type { CommitName } from '../platform/crash-points.ts'
import type { Logger } from '../platform/log.ts'
import type { Transaction } from '../platform/postgres.ts'
import { type Ledger, storeDecisions } from './ledger.ts'
import { raiseFence } from './sql/fence.ts'

/** Who raises a fence that no person asked for. */
export const BY_PAYOUTD = 'payoutd'

/** By merchant, what shows that its ledger has lost something. */
type Losses = ReadonlyMap<string, string>

/** Not an error: rolls back, so that merchants are locked before their payouts. */
class MustFence extends Error {
  readonly losses: Losses

  constructor(losses: Losses) {
    super()
    this.losses = losses
  }
}

/**
 * Runs `work` in a transaction, in which `store` stores what evidence came to. Where that shows that the ledger has lost
 * what was sent, the merchant is fenced in the same transaction: nothing more of it is sent until `payoutd recover` has
 * asked the gateway about all that is open. Then `work` runs twice: see Database.transaction.
 */
export async function storeEvidence<Result>(
  { ledger, log }: { ledger: Ledger; log: Logger },
  name: CommitName,
  work: (tx: Transaction, store: (decisions: readonly Decision[]) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const fenced = new Map<string, string>()
  for (;;) {
    try {
      const result = await ledger.db.transaction(name, async (tx) => {
        for (const merchantId of [...fenced.keys()].sort()) {
          const reason = fenced.get(merchantId) as string
          await tx.run(raiseFence, { merchantId, by: BY_PAYOUTD, reason, feeEstimate: 0n })
        }
        return work(tx, async (decisions) => {
          const losses = lossesIn(decisions).filter(([merchantId]) => !fenced.has(merchantId))
          if (losses.length > 0) throw new MustFence(new Map(losses))
          await storeDecisions(tx, ledger, decisions)
        })
      })
      for (const [merchantId, reason] of fenced) log.error({ merchantId, reason }, FENCED)
      return result
    } catch (error) {
      if (!(error instanceof MustFence)) throw error
      for (const [merchantId, reason] of error.losses) fenced.set(merchantId, reason)
    }
  }
}

const FENCED =
  'the merchant is fenced, and nothing of it is sent: the ledger lacks what was sent. ' +
  'Run payoutd recover, which asks the gateway about every open payout'

const lossesIn = (decisions: readonly Decision[]): [merchantId: string, reason: string][] =>
  decisions.flatMap((decision) =>
    'anomaly' in decision && decision.anomaly.kind === NEVER_SENT
      ? [[decision.anomaly.merchantId, `the ledger was set back: ${decision.anomaly.detail}`]]
      : [],
  )
