import { validate as isUuid } from 'uuid'
import type { Database } from '../platform/postgres/postgres.ts'
import { anomalyById, type WholeAnomaly } from './sql/anomalies.ts'

/** An anomaly by its id, which may be any text; undefined: there is none. */
export async function findAnomaly(
  db: Database,
  merchantId: string,
  anomalyId: string,
): Promise<WholeAnomaly | undefined> {
  if (!isUuid(anomalyId)) return undefined
  const [found] = await db.run(anomalyById, { merchantId, anomalyId })
  return found
}
