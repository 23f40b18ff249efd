import type { Scrubbed } from '../../domain/mask.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import type { Acknowledgement } from '../../queries/sql/anomalies.ts'

export const payoutsOfAnomalies = sql<
  { merchantId: string; anomalyIds: string[] },
  { merchantId: string; payoutId: string }
>`
  select distinct merchant_id, payout_id from anomalies
  where merchant_id = ${'merchantId'} and anomaly_id = any(${'anomalyIds'}::uuid[]) and payout_id is not null`

export type LockedAnomaly = { anomalyId: string; detail: string; times: number } & Acknowledgement

/** In the order of the primary key, so that two people who acknowledge the same anomalies wait for one another. */
export const lockAnomalies = sql<{ merchantId: string; anomalyIds: string[] }, LockedAnomaly>`
  select anomaly_id, detail, times::int, acknowledged_by, acknowledged_reason, acknowledged_at from anomalies
  where merchant_id = ${'merchantId'} and anomaly_id = any(${'anomalyIds'}::uuid[])
  order by anomaly_id
  for update`

/** Leaves an acknowledged anomaly as it was. */
export const setAcknowledged = sql<{
  merchantId: string
  anomalyIds: string[]
  by: string
  reason: Scrubbed
}>`
  update anomalies
  set acknowledged_by = ${'by'}, acknowledged_reason = ${'reason'}, acknowledged_at = now()
  where merchant_id = ${'merchantId'} and anomaly_id = any(${'anomalyIds'}::uuid[]) and acknowledged_at is null`
