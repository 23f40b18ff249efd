import type { Instant } from '../domain/instant.ts'
import { doubtedAnew } from '../domain/payout/next-query.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { type InForce, settingsInForce } from './sql/settings-in-force.ts'

/** By merchant, the settings in force of those whose queries were answered. */
export async function settingsInForceOf(
  tx: Transaction,
  evidence: readonly { source: string; merchantId: string }[],
): Promise<ReadonlyMap<string, InForce>> {
  const queried = evidence.flatMap(({ source, merchantId }) => (source === 'QUERY' ? [merchantId] : []))
  if (queried.length === 0) return new Map()
  const inForce = await tx.run(settingsInForce, { merchantIds: [...new Set(queried)] })
  return new Map(inForce.map((each) => [each.merchantId, each]))
}

/** Until when the gateway of this account mixed answers up, the latest time. Null: it never did. */
export const mixedUntilOf = (accountId: string, inForce: InForce | undefined): Instant | null =>
  inForce?.mixedUntil?.[accountId] ?? null

/**
 * Whether payoutd may conclude anything from the answer to a query: by the settings in force, and while no answers were mixed up. A
 * payout's grace begins anew then, see sinceMixed.
 */
export const mayConclude = (
  { settingsHash, askedAt, accountId }: { settingsHash: string; askedAt: Instant; accountId: string },
  inForce: InForce | undefined,
): boolean =>
  inForce?.settingsHash === settingsHash && askedAt >= (mixedUntilOf(accountId, inForce) ?? askedAt)

/** The payout, or payin, as evidence of it is judged: for an answer to a query, without what was counted before answers were mixed up. */
export function sinceMixed<Of extends { unknownSince: Instant | null; notFoundCount: number }>(
  of: Of | undefined,
  evidence: { merchantId: string } & ({ source: 'CALLBACK' } | { source: 'QUERY'; accountId: string }),
  inForce: ReadonlyMap<string, InForce>,
): Of | undefined {
  if (!of || evidence.source === 'CALLBACK') return of
  const mixedUntil = mixedUntilOf(evidence.accountId, inForce.get(evidence.merchantId))
  return doubtedAnew(of, mixedUntil)
}
