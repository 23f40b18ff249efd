import { paise, ZERO } from "../payout/money.js";
import { paidBetween, snapshotNear } from "./sql/reconciliations.js";
/**
 * How the balance moved over a run's period: from the snapshot nearest to its beginning to the one nearest to its end.
 * `unknown` where these are the same, or there is none.
 */
export async function movementOver({ merchantId, periodFrom, periodTo, balance }, db) {
    if (balance === null)
        return { kind: 'untold' };
    const [from] = await db.run(snapshotNear, { merchantId, moment: periodFrom });
    const [to] = await db.run(snapshotNear, { merchantId, moment: periodTo });
    if (!from || !to || from.at >= to.at)
        return { kind: 'unknown' };
    const [row] = await db.run(paidBetween, { merchantId, from: from.at, to: to.at });
    return explain(from, to, row?.paid ?? paise(0));
}
/**
 * Whether what was paid explains how the balance moved. What was in flight at either end may stand on one side of the
 * balance or on the other, so it is allowed for. Money that came in can hide money that is missing.
 */
export function explain(from, to, paid) {
    const gap = paise(from.balance - to.balance - paid);
    const allowance = gap < 0n ? from.inFlight : to.inFlight;
    const rest = paise((gap < 0n ? -gap : gap) - allowance);
    const told = { from, to, paid, gap, allowance };
    if (gap === 0n)
        return { kind: 'explained', ...told, rest: ZERO };
    if (rest <= 0n)
        return { kind: 'in-flight', ...told, rest: ZERO };
    return { kind: gap > 0n ? 'missing' : 'more', ...told, rest };
}
