import { compareStatement, } from "../oracle/compare-statement.js";
import { sum } from "../payout/money.js";
import { movementOver } from "./movement.js";
import { differing, namedBy, paidInPeriod, progress, totals, } from "./sql/payouts.js";
/** What a run found until now, beside the lines of a statement if there is one. */
export async function reportOf(run, lines, db) {
    const { reconciliationId, merchantId } = run;
    const [counted] = await db.run(progress, { reconciliationId });
    const [added] = await db.run(totals, { reconciliationId, merchantId });
    if (!counted || !added)
        throw new Error('a count has a row');
    return {
        run,
        ...counted,
        totals: added,
        differing: await db.run(differing, { reconciliationId, merchantId }),
        balance: await movementOver(run, db),
        statement: lines && (await besideStatement(run, lines, db)),
    };
}
async function besideStatement({ merchantId, periodFrom: from, periodTo: to }, lines, db) {
    const paid = await db.run(paidInPeriod, { merchantId, from, to });
    const named = await db.run(namedBy, {
        merchantId,
        utrs: lines.flatMap(({ utr }) => utr ?? []),
        orderNos: lines.flatMap(({ mchOrderNo }) => mchOrderNo ?? []),
    });
    const amount = sum(lines.map((line) => line.amount));
    return { lines: lines.length, amount, differences: compareStatement(lines, paid, named) };
}
/** Whether everything was told, and nothing differs. */
export const agrees = ({ listed, asked, differing, balance, statement }) => asked === listed &&
    differing.length === 0 &&
    balance.kind !== 'missing' &&
    (statement === null || statement.differences.length === 0);
