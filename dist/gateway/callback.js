import { redactReceived } from "./exchange.js";
import { readOrderReport } from "./order-report.js";
import { readPayinReport } from "./payin-report.js";
import { readSignedQuery } from "./signed-query.js";
import { readIdentifier } from "./values.js";
/** Reads a payout callback (gateway contract, "Payout callback") from its query string, without the "?". */
export function parsePayoutCallback(rawQueryString, dialect, key) {
    const read = readSignedQuery(rawQueryString, dialect.sign, key);
    if (read.kind !== 'verified')
        return read;
    return { kind: 'verified', report: readOrderReport(read.fields, { request: redactCallback(read.fields) }) };
}
/** Reads a payin callback (gateway contract, "Payin callback") from its query string, without the "?". */
export function parsePayinCallback(rawQueryString, dialect, key) {
    const read = readSignedQuery(rawQueryString, dialect.sign, key);
    if (read.kind !== 'verified')
        return read;
    const { fields } = read;
    const report = {
        ...readPayinReport(fields, { request: redactCallback(fields) }),
        mchId: readIdentifier(fields.get('mchId')),
        backType: readIdentifier(fields.get('backType')),
        channelCode: readIdentifier(fields.get('channelCode')),
    };
    return { kind: 'verified', report };
}
/** No parameter of a callback is null. */
const redactCallback = (fields) => redactReceived(fields, []);
