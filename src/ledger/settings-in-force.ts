import type { Transaction } from '../platform/postgres/postgres.ts'
import { settingsInForce } from './sql/settings-in-force.ts'

/** By merchant, the settings in force of those whose queries were answered. */
export async function settingsInForceOf(
  tx: Transaction,
  evidence: readonly { source: string; merchantId: string }[],
): Promise<ReadonlyMap<string, string>> {
  const queried = evidence.flatMap(({ source, merchantId }) => (source === 'QUERY' ? [merchantId] : []))
  if (queried.length === 0) return new Map()
  const inForce = await tx.run(settingsInForce, { merchantIds: [...new Set(queried)] })
  return new Map(inForce.map(({ merchantId, settingsHash }) => [merchantId, settingsHash]))
}
