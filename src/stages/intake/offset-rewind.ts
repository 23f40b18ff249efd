import { BY_PAYOUTD } from '../../ledger/evidence/proven-losses.ts'
import { type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import { fenceEvery } from '../../ledger/sql/server-identity.ts'
import type { Partition } from '../../platform/kafka/consumer-session.ts'
import type { Standing } from '../../platform/kafka/offsets.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import type { Stands } from './sql/offsets.ts'

/**
 * Whether the ledger has lost its position `known`, because it was set back. A ledger that moved past records that Kafka lost
 * has not, wherever it is now.
 */
export function isSetBack(known: Standing, found: Stands | undefined): boolean {
  if (!found) return true
  const { leftOffset, leftLogId } = found
  if (hasReached(found, known)) return false
  return leftOffset === null || !hasReached({ offset: leftOffset, logId: leftLogId }, known)
}

const hasReached = (stands: Standing, known: Standing): boolean =>
  stands.offset >= known.offset && (known.logId === null || stands.logId === known.logId)

/** `merchantIds`: the merchants in the settings. */
type Whom = { ledger: Ledger; merchantIds: readonly string[] }

/**
 * Fences every merchant, as at a failover: the ledger may have lost sends since then, too. Each merchant gets an anomaly with
 * the reason, which `payoutd recover --nothing-lost` takes as a loss. Returns the merchants that it fenced for this reason now.
 */
export async function fenceAfterRewind(
  tx: Transaction,
  reason: string,
  { ledger, merchantIds }: Whom,
): Promise<string[]> {
  const fenced = await tx.run(fenceEvery, {
    merchantIds: [...merchantIds],
    by: BY_PAYOUTD,
    reason,
    oneStep: false,
  })
  const decisions = fenced.map(({ merchantId }) => ({
    anomaly: {
      ...{ merchantId, payoutId: null, orderNo: null, exchange: null },
      ...({ kind: 'ledger-set-back', detail: reason, source: 'COMMAND' } as const),
    },
  }))
  await storeDecisions(tx, ledger, decisions)
  return fenced.map(({ merchantId }) => merchantId)
}

export const rewindInWords = (
  { topic, partition }: Partition,
  known: Standing,
  found: Standing | undefined,
): string =>
  `the ledger says that it has read partition ${partition} of ${topic} up to ${found ? inWords(found) : 'nothing'}, but it ` +
  `had read it up to ${inWords(known)}: the ledger was set back (a failover or a restore), or another ledger uses the ` +
  'same topics. payoutd reads the partition again from where the ledger stands'

const inWords = ({ offset, logId }: Standing): string =>
  logId === null ? `offset ${offset}` : `offset ${offset} of log ${logId}`

export const ALL_FENCED =
  'payoutd has fenced every merchant and sends nothing: the ledger has lost commands that it had, and may have lost what was ' +
  'sent since. Run payoutd recover, which queries the gateway about every open payout'
