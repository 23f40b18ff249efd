import type { Transaction } from '../../platform/postgres/postgres.ts'
import { accountsWithKeys } from './sql/accounts-with-keys.ts'

/** Where a callback comes from: the gateway accounts in the settings whose key signed it, and that key; absent: not known. */
export type CallbackOrigin = { source: 'CALLBACK'; accountIds: readonly string[]; keyFingerprint?: string }

type MaybeFromCallback = { merchantId: string } & Partial<Omit<CallbackOrigin, 'source'>>

/**
 * The same evidence; where a callback seems to come from another account than it is about, with every account that ever had its
 * key. A gateway that moves keeps its keys, and the settings of this process may name only one of its addresses.
 */
export async function withAccountsOfKeys<Evidence extends MaybeFromCallback>(
  tx: Transaction,
  evidence: readonly Evidence[],
  isFromElsewhere: (evidence: Evidence, accountIds: readonly string[]) => boolean,
): Promise<readonly Evidence[]> {
  const keys = evidence.flatMap((each) => {
    const { merchantId, accountIds, keyFingerprint } = each
    const isToExtend = accountIds && keyFingerprint && isFromElsewhere(each, accountIds)
    return isToExtend ? [{ merchantId, keyFingerprint }] : []
  })
  if (keys.length === 0) return evidence
  const known = await tx.run(accountsWithKeys, { keys })
  return evidence.map((each) => {
    const { merchantId, accountIds, keyFingerprint } = each
    if (!accountIds) return each
    const others = known.filter(
      (other) => other.merchantId === merchantId && other.keyFingerprint === keyFingerprint,
    )
    return { ...each, accountIds: [...new Set([...accountIds, ...others.map(({ accountId }) => accountId)])] }
  })
}
