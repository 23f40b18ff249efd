import { validate as isUuid } from 'uuid'
import { scrub } from '../domain/mask.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import { recordAct } from '../ledger/acts.ts'
import { BEYOND } from '../ledger/anomalies.ts'
import { lockPayouts } from '../ledger/ledger.ts'
import { keepAcknowledged } from '../ledger/sql/said-otherwise.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import { lockAnomalies, payoutsOfAnomalies, setAcknowledged } from './sql/acknowledge.ts'

/** `shown`: what the person was shown of them; undefined: nobody was asked. */
export type AcknowledgeRequest = Decided & {
  merchantId: string
  anomalyIds: readonly string[]
  shown?: readonly Acknowledged[]
}

/**
 * The result of acknowledging one anomaly. `already`: who did it first, which stands. `more`: it counts reports, and more of them
 * than the person was shown. `times`: how many.
 */
export type Acknowledged = { anomalyId: string } & (
  | { kind: 'acknowledged'; times: number }
  | { kind: 'more'; times: number }
  | { kind: 'already'; by: string; at: number }
  | { kind: 'unknown' }
)

/** Records that a person has looked at each; an unknown one does not hold up the others. */
export function acknowledgeAnomalies(request: AcknowledgeRequest, db: Database): Promise<Acknowledged[]> {
  return db.transaction('acknowledge anomalies', async (tx) => {
    const { merchantId, by } = request
    // Lock payouts before anomalies, in the order in which whoever stores an anomaly locks them.
    const payouts = await lockPayouts(tx, await tx.run(payoutsOfAnomalies, requested(request)))
    const outcomes = await decide(tx, request)
    const anomalyIds = outcomes.flatMap(({ kind, anomalyId }) => (kind === 'acknowledged' ? [anomalyId] : []))
    const reason = scrub(request.reason)
    await tx.run(setAcknowledged, { merchantId, anomalyIds, by, reason })
    await tx.run(keepAcknowledged, { payouts })
    if (anomalyIds.length > 0) {
      const change = { subjects: anomalyIds, before: { acknowledged: false }, after: { acknowledged: true } }
      await recordAct(tx, { command: 'anomaly acknowledge', by, reason, merchantId, ...change })
    }
    return outcomes
  })
}

/** What `acknowledgeAnomalies` would do now. Stores nothing. */
export const previewAcknowledge = (request: AcknowledgeRequest, db: Database): Promise<Acknowledged[]> =>
  db.transaction('preview of an acknowledgement', (tx) => decide(tx, request))

const wantedIds = ({ anomalyIds }: AcknowledgeRequest): string[] => [
  ...new Set(anomalyIds.map((id) => id.toLowerCase())),
]
const requested = (request: AcknowledgeRequest) => ({
  merchantId: request.merchantId,
  anomalyIds: wantedIds(request).filter((id) => isUuid(id)),
})

async function decide(tx: Transaction, request: AcknowledgeRequest): Promise<Acknowledged[]> {
  const wanted = wantedIds(request)
  const locked = await tx.run(lockAnomalies, requested(request))
  const known = new Map(locked.map((each) => [each.anomalyId, each]))
  return wanted.map((anomalyId): Acknowledged => {
    const anomaly = known.get(anomalyId)
    if (!anomaly) return { anomalyId, kind: 'unknown' }
    const { acknowledgedBy: by, acknowledgedAt: at, times, detail } = anomaly
    if (by !== null && at !== null) return { anomalyId, kind: 'already', by, at }
    const shown = request.shown?.find((each) => each.anomalyId === anomalyId)
    const isMore = detail === BEYOND && shown?.kind === 'acknowledged' && shown.times !== times
    return { anomalyId, kind: isMore ? 'more' : 'acknowledged', times }
  })
}
