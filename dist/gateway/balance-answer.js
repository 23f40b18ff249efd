import { readAmount, readIdentifier } from "./values.js";
/**
 * What a balance query came to. All five amounts must be whole numbers of paise (gateway contract, "Balance
 * record"): a balance of which a part is unreadable covers nothing.
 */
export function readBalanceAnswer(heard, exchange) {
    switch (heard.kind) {
        case 'not-sent':
            return { kind: 'unknown', reason: 'not-sent', exchange };
        case 'unknown':
            return { kind: 'unknown', reason: heard.reason, exchange };
        case 'answer':
            return heard.retCode === 'SUCCESS'
                ? (readBalance(heard.fields) ?? { kind: 'unknown', reason: 'unparsable', exchange })
                : { kind: 'unknown', reason: 'unlisted-code', exchange };
    }
}
function readBalance(fields) {
    const amounts = {};
    for (const name of AMOUNTS) {
        const amount = readAmount(fields.get(name));
        if (amount === null)
            return null;
        amounts[name] = amount;
    }
    const busNo = readIdentifier(fields.get('busNo'));
    return { kind: 'balance', busNo, ...amounts };
}
const AMOUNTS = ['amount', 'frozenAmount', 'availableAmount', 'pendingAmount', 'unsettledAmount'];
