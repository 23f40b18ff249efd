import { demand } from "./demand.js";
import { codeOf, succeeded } from "./reply.js";
/** Asks each and demands that it is refused. Resolves with how it was. */
export async function refusesAll(subject, operation, wrongs) {
    const codes = new Set();
    for (const [how, given] of wrongs) {
        const reply = await subject.ask(operation, given);
        demand(!succeeded(reply), `takes ${how}`);
        codes.add(codeOf(reply));
    }
    return `refused: ${[...codes].join(', ')}`;
}
/**
 * Orders that each break one rule, after one that breaks none: all must be refused, and no query may find them.
 * Throws NotTried where even the good one is refused.
 */
export async function takesNone(subject, operation, breaks) {
    const payin = operation === 'payinCreate';
    await (payin ? subject.payin() : subject.payout());
    const wrongs = breaks.map(([how, over]) => [how, payin ? subject.payinFields(over) : subject.payoutFields(over)]);
    const refused = await refusesAll(subject, operation, wrongs);
    for (const [how, { mchOrderNo }] of wrongs) {
        if (typeof mchOrderNo !== 'string' || mchOrderNo.length > 30)
            continue;
        const found = await subject.query(payin ? 'payinQuery' : 'payoutQuery', mchOrderNo);
        demand(!succeeded(found), `refuses ${how}, and a query finds the order`);
    }
    return refused;
}
/** One wrong order for each parameter that is left out. */
export const without = (...names) => names.map((name) => [`no ${name}`, { [name]: null }]);
/** One wrong order for each value. */
export const withEach = (name, values) => values.map((value) => [`${name} ${shown(String(value))}`, { [name]: value }]);
const shown = (value) => (value.length > 20 ? `of ${value.length} characters` : value);
