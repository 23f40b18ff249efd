import { shardOf } from "../ledger/messages.js";
import { payinEventId } from "./identifiers.js";
/** The message about the end that a change came to. */
export function payinResult({ after, source }, at, ledger) {
    const { merchantId, payinId, payOrderId, amount, currency, utr, paidAt, reason, version, traceparent } = after;
    const key = `${merchantId}:${payinId}`;
    return {
        shard: shardOf(key),
        topic: ledger.topics.payinResults,
        key,
        eventId: payinEventId(merchantId, payinId, version),
        type: 'in.payoutd.PayinResult',
        value: ledger.encode('PayinResult', {
            payinId,
            merchantId,
            payOrderId,
            status: after.state.toUpperCase(),
            amount,
            currency,
            utr,
            paidAt,
            reason,
            evidence: source,
            version,
            occurredAt: at,
        }),
        headers: traceparent === null ? null : { traceparent },
        about: null,
    };
}
