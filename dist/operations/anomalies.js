import { validate as isUuid } from 'uuid';
import { scrub } from "../payout/mask.js";
import { anomalyById, lockAnomalies, setAcknowledged } from "./sql/anomalies.js";
/** An anomaly by its id, which may be any text; undefined: nobody knows it. */
export async function findAnomaly(db, merchantId, anomalyId) {
    if (!isUuid(anomalyId))
        return undefined;
    const [found] = await db.run(anomalyById, { merchantId, anomalyId });
    return found;
}
/** Records that a person has looked at each; one that nobody knows keeps none of the others back. */
export function acknowledgeAnomalies(request, db) {
    return db.transaction('acknowledge anomalies', async (tx) => {
        const outcomes = await decide(tx, request);
        const anomalyIds = outcomes.flatMap(({ kind, anomalyId }) => (kind === 'acknowledged' ? [anomalyId] : []));
        const { merchantId, by } = request;
        await tx.run(setAcknowledged, { merchantId, anomalyIds, by, reason: scrub(request.reason) });
        return outcomes;
    });
}
/** What `acknowledgeAnomalies` would do now. Stores nothing. */
export const previewAcknowledge = (request, db) => db.transaction('preview of an acknowledgement', (tx) => decide(tx, request));
async function decide(tx, { merchantId, anomalyIds }) {
    const wanted = [...new Set(anomalyIds.map((id) => id.toLowerCase()))];
    const locked = await tx.run(lockAnomalies, { merchantId, anomalyIds: wanted.filter((id) => isUuid(id)) });
    const known = new Map(locked.map((each) => [each.anomalyId, each]));
    return wanted.map((anomalyId) => {
        const anomaly = known.get(anomalyId);
        if (!anomaly)
            return { anomalyId, kind: 'unknown' };
        const { acknowledgedBy: by, acknowledgedAt: at } = anomaly;
        return by === null || at === null
            ? { anomalyId, kind: 'acknowledged' }
            : { anomalyId, kind: 'already', by, at };
    });
}
