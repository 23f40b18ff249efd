import { unsealed } from "./asked-for.js";
import { payoutsInReview } from "./sql/review.js";
import { anomaliesAbout, attemptsOf, historyOf, } from "./sql/story.js";
/** The `limit` longest in review of one merchant, the longest first. */
export async function reviewCases(db, { merchantId, limit, keys }) {
    const cases = [];
    for (const { sealed, ...payout } of await db.run(payoutsInReview, { merchantId, limit })) {
        cases.push({ payout, ...unsealed(payout, sealed, keys), evidence: await evidenceOf(db, payout) });
    }
    return cases;
}
export async function evidenceOf(db, { merchantId, payoutId, orderNo }) {
    const key = { merchantId, payoutId };
    return {
        attempts: await db.run(attemptsOf, key),
        history: await db.run(historyOf, key),
        anomalies: await db.run(anomaliesAbout, { ...key, orderNo }),
    };
}
/** The last thing that the gateway said of the order, believed or not; null: it never said anything. */
export function lastWord({ history, anomalies }) {
    const words = [...history, ...anomalies].flatMap(({ at, lastAt, source, exchange }) => exchange !== null && isSaid(source, exchange) ? [{ at: lastAt ?? at, source, exchange }] : []);
    return words.reduce((last, word) => (last && last.at > word.at ? last : word), null);
}
/** A page of some proxy is no word of the gateway: every answer of its own has a retCode. */
const isSaid = (source, { response }) => source === 'CALLBACK' || typeof response?.retCode === 'string';
