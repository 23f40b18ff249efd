import { readAmount, readIdentifier, readMessage, readStatus } from "./values.js";
/**
 * What a signed query answer or callback says about its order. A report without a readable mchOrderNo has
 * the empty text for it, which is no payout's.
 */
export function readOrderReport(fields, exchange) {
    return {
        mchOrderNo: readIdentifier(fields.get('mchOrderNo')) ?? '',
        agentpayOrderId: readIdentifier(fields.get('agentpayOrderId')),
        status: readStatus(fields.get('status')),
        amount: readAmount(fields.get('amount')),
        fee: readAmount(fields.get('fee')),
        utr: readIdentifier(fields.get('channelPayNo')),
        errorMessage: readMessage(fields.get('errorMessage'), []),
        exchange,
    };
}
