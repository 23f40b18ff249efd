import { recordAct } from "../ledger/acts.js";
import { clearPause, lockPause, openPaused, setPause } from "./sql/stop-button.js";
/** Once it resolves, no further payout of the merchant is claimed. A pause that stands is left as it is. */
export function pauseMerchant(db, request) {
    const { merchantId, by, reason, feeEstimate } = request;
    return db.transaction('pause merchant', async (tx) => {
        const [row] = await tx.run(lockPause, { merchantId });
        if (row && row.pausedBy !== null)
            return { kind: 'already', ...row };
        if (row)
            await tx.run(setPause, { merchantId, by, reason });
        else if (feeEstimate === null)
            return { kind: 'unknown' };
        else
            await tx.run(openPaused, { merchantId, by, reason, feeEstimate });
        const change = { subjects: [], before: null, after: { pausedBy: by, pausedReason: reason } };
        await recordAct(tx, { by, reason, command: 'pause', merchantId, ...change });
        return { kind: 'paused' };
    });
}
export function resumeMerchant(db, { merchantId, by, reason }) {
    return db.transaction('resume merchant', async (tx) => {
        const [row] = await tx.run(lockPause, { merchantId });
        if (!row)
            return { kind: 'unknown' };
        if (row.pausedBy === null)
            return { kind: 'not-paused' };
        await tx.run(clearPause, { merchantId });
        const change = { subjects: [], before: row, after: null };
        await recordAct(tx, { by, reason, command: 'resume', merchantId, ...change });
        return { kind: 'resumed', ...row };
    });
}
