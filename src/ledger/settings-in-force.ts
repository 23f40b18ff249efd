import type { Instant } from '../domain/instant.ts'
import { doubtedAnew, type QueryPolicy } from '../domain/payout/next-query.ts'
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

/** The gateway of an account, and how payoutd judges its answers. */
type JudgedAccount = { baseUrl: string; queryPolicy: QueryPolicy }

/** Until when the gateway at this address mixed answers up, the latest time. Null: it never did. */
const mixedUntilOf = (baseUrl: string, inForce: InForce | undefined): Instant | null =>
  inForce?.mixedUntil?.[baseUrl] ?? null

/** Since when a "not found" there counts: a grace after answers were last mixed up. */
export const countsSince = ({ baseUrl, queryPolicy }: JudgedAccount, inForce: InForce | undefined): Instant =>
  (mixedUntilOf(baseUrl, inForce) ?? Number.NEGATIVE_INFINITY) + queryPolicy.graceMs

/** Whether payoutd may conclude anything from the answer to a query: by the settings in force, and while no answers were mixed up. */
export const mayConclude = (
  evidence: JudgedAccount & { settingsHash: string; askedAt: Instant },
  inForce: InForce | undefined,
): boolean =>
  inForce?.settingsHash === evidence.settingsHash && evidence.askedAt >= countsSince(evidence, inForce)

/** The payout, or payin, as evidence of it is judged: for an answer to a query, without what was counted before answers were mixed up. */
export function sinceMixed<Of extends { unknownSince: Instant | null; notFoundCount: number }>(
  of: Of | undefined,
  evidence: { merchantId: string } & ({ source: 'CALLBACK' } | { source: 'QUERY'; baseUrl: string }),
  inForce: ReadonlyMap<string, InForce>,
): Of | undefined {
  if (!of || evidence.source === 'CALLBACK') return of
  const mixedUntil = mixedUntilOf(evidence.baseUrl, inForce.get(evidence.merchantId))
  return doubtedAnew(of, mixedUntil)
}
