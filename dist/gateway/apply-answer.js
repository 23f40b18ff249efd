import { readAmount, readIdentifier, readMessage, readStatus } from "./values.js";
/**
 * What an apply call came to (docs/design.md, "What an answer means"). An accepted one proves that the
 * gateway has the order and no more: the answer carries neither order number nor amount. A code in none of
 * the dialect's lists is unknown. `secrets` are the payout's bank details, kept out of the message.
 */
export function readApplyAnswer(heard, codes, secrets, exchange) {
    switch (heard.kind) {
        case 'not-sent':
            return { kind: 'not-sent', reason: heard.reason, exchange };
        case 'unknown':
            return { kind: 'unknown', reason: heard.reason, exchange };
        case 'answer':
            return heard.retCode === 'SUCCESS'
                ? readSuccess(heard.fields, exchange)
                : readFailure(heard.retCode, heard.fields, codes, secrets, exchange);
    }
}
function readSuccess(fields, exchange) {
    const agentpayOrderId = readIdentifier(fields.get('agentpayOrderId'));
    if (agentpayOrderId === null)
        return { kind: 'unknown', reason: 'no-order-id', exchange };
    const fee = readAmount(fields.get('fee'));
    return { kind: 'accepted', agentpayOrderId, fee, status: readStatus(fields.get('status')), exchange };
}
function readFailure(code, fields, codes, secrets, exchange) {
    if (codes.duplicate.includes(code))
        return { kind: 'duplicate', code, exchange };
    const message = readMessage(fields.get('retMsg') || fields.get('errorMessage'), secrets) ?? '';
    if (codes.refused.includes(code))
        return { kind: 'refused', code, message, exchange };
    if (codes.retryLater.includes(code)) {
        return { kind: 'retry-later', code, message, balanceShort: codes.balanceShort.includes(code), exchange };
    }
    return { kind: 'unknown', reason: 'unlisted-code', exchange };
}
