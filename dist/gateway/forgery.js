import { forgeryIn } from "../payout/forgery.js";
/** An address may need the characters that are refused, and is ours. The JSON in `extra` needs none of them. */
const EXEMPT = new Set(['notifyUrl', 'returnUrl']);
/** The outgoing values that must not be signed. */
export function forgeriesIn(values) {
    const faults = [];
    for (const [field, value] of values) {
        const forgery = typeof value === 'string' && !EXEMPT.has(field) ? forgeryIn(value) : null;
        if (forgery)
            faults.push({ field, rule: forgery.rule, message: forgery.message });
    }
    return faults;
}
