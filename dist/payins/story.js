import { payinAnomalies, payinById, payinHistory } from "./sql/story.js";
/** A payin by its id, which may be any text; undefined: nobody knows it. */
export async function findPayin(db, { merchantId, payinId }) {
    const [payin] = await db.run(payinById, { merchantId, payinId });
    return payin;
}
/**
 * The story of a payin; null: nobody knows it. Its parts are read one after another; what moves meanwhile shows
 * in the later ones.
 */
export async function tellPayin(db, wanted) {
    const payin = await findPayin(db, wanted);
    if (!payin)
        return null;
    const { merchantId, payinId } = payin;
    const key = { merchantId, payinId };
    return {
        ...payin,
        history: await db.run(payinHistory, key),
        anomalies: await db.run(payinAnomalies, key),
    };
}
/** As JSON. Amounts are text: a JSON number need not hold one exactly. */
export const payinJson = (payin, indent) => JSON.stringify(payin, (_, value) => (typeof value === 'bigint' ? value.toString() : value), indent);
