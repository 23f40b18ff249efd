import { paise } from "../payout/money.js";
import { inReview, merchantRows, openPayouts, } from "./sql/merchants.js";
/** Every merchant that ever sent, or was paused. */
export async function merchantOverviews(db, rules) {
    const rows = await db.run(merchantRows, {});
    const open = Map.groupBy(await db.run(openPayouts, { merchantId: null }), ({ merchantId }) => merchantId);
    const reviews = new Map((await db.run(inReview, {})).map(({ merchantId, count }) => [merchantId, count]));
    return rows.map((row) => overview(row, trafficOf(open.get(row.merchantId) ?? []), reviews.get(row.merchantId) ?? 0, rules));
}
/** What one merchant has under way now. */
export const merchantTraffic = async (db, merchantId) => trafficOf(await db.run(openPayouts, { merchantId }));
const NONE = { count: 0, amount: paise(0) };
function trafficOf(open) {
    const of = (state) => open.find((one) => one.state === state) ?? NONE;
    return {
        held: of('held'),
        queued: of('queued'),
        submitting: of('submitting'),
        unknown: of('unknown'),
        processing: of('processing'),
    };
}
export function overview(row, traffic, inReview, { spendable, ramped }) {
    const { merchantId, available, snapshotAt, ramp, now } = row;
    const { queued } = traffic;
    const needed = queued.amount + BigInt(queued.count) * row.feeEstimate;
    const missing = needed - spendable(row);
    return {
        merchantId,
        recovering: recoveryOf(row),
        paused: pauseOf(row),
        circuit: circuitOf(row),
        canary: ramp < ramped ? { good: ramp, of: ramped } : null,
        balance: available === null || snapshotAt === null ? null : { available, ageMs: now - snapshotAt },
        traffic,
        inReview,
        shortfall: available === null ? null : paise(missing > 0n ? missing : 0n),
    };
}
export const pauseOf = (row) => row.pausedBy === null
    ? null
    : { pausedBy: row.pausedBy, pausedReason: row.pausedReason, pausedAt: row.pausedAt };
export const recoveryOf = (row) => row.recoveringSince === null
    ? null
    : {
        recoveringSince: row.recoveringSince,
        recoveringBy: row.recoveringBy,
        recoveringReason: row.recoveringReason,
    };
export const circuitOf = ({ circuitOpenUntil, circuitReason, now }) => circuitOpenUntil !== null && now < circuitOpenUntil
    ? { until: circuitOpenUntil, reason: circuitReason }
    : null;
