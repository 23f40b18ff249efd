import { crc32 } from 'node:zlib';
import { eventId, reversalEventId } from "../payout/identifiers.js";
import { isEnd } from "../payout/states.js";
/** Messages of one key go through one shard, in order. The number of shards is fixed by what is in flight. */
export const SHARDS = 8;
export const shardOf = (key) => crc32(key) % SHARDS;
/** Every transition is an event; an end is a result too. */
export function messagesAbout(transition, topics, encode) {
    const { payout } = transition;
    const key = `${payout.merchantId}:${payout.payoutId}`;
    const row = {
        shard: shardOf(key),
        key,
        eventId: eventId(payout.merchantId, payout.payoutId, payout.version),
        headers: null,
        about: payout,
    };
    const event = {
        ...row,
        topic: topics.events,
        type: 'in.payoutd.PayoutEvent',
        value: encode('PayoutEvent', eventRecord(transition)),
    };
    if (!isEnd(payout.state))
        return [event];
    const result = {
        ...row,
        topic: topics.results,
        type: 'in.payoutd.PayoutResult',
        value: encode('PayoutResult', resultRecord(transition)),
    };
    return [event, result];
}
const common = ({ payout, source, at }) => ({
    payoutId: payout.payoutId,
    merchantId: payout.merchantId,
    batchId: payout.batchId,
    mchOrderNo: payout.orderNo,
    version: payout.version,
    evidence: source,
    amount: payout.amount,
    currency: payout.currency,
    occurredAt: at,
});
const eventRecord = (transition) => ({
    ...common(transition),
    fromState: transition.from?.toUpperCase() ?? null,
    toState: transition.payout.state.toUpperCase(),
    reason: transition.payout.reason,
});
const resultRecord = (transition) => ({
    ...common(transition),
    agentpayOrderId: transition.payout.agentpayOrderId,
    status: transition.payout.state.toUpperCase(),
    fee: transition.payout.fee,
    utr: transition.payout.utr,
    errors: errorsOf(transition),
});
/** A rejected command lists its faults; a failed or cancelled payout says why in the same shape. */
function errorsOf({ payout, source, faults }) {
    if (payout.state === 'failed') {
        const rule = source === 'OPERATOR' ? 'OPERATOR' : 'GATEWAY';
        return [{ field: '', rule, message: payout.reason ?? '', found: '' }];
    }
    if (payout.state === 'cancelled') {
        return [
            {
                field: '',
                rule: payout.reason === 'expired' ? 'EXPIRED' : 'CANCELLED',
                message: payout.reason ?? '',
                found: '',
            },
        ];
    }
    return faults;
}
/** It stands beside the result, on its topic and in its order, and makes no version. */
export function reversalMessage(reversal, topics, encode) {
    const { payout, anomalyId, reason, at } = reversal;
    const key = `${payout.merchantId}:${payout.payoutId}`;
    return {
        shard: shardOf(key),
        topic: topics.results,
        key,
        eventId: reversalEventId(payout.merchantId, payout.payoutId),
        type: 'in.payoutd.PayoutReversed',
        value: encode('PayoutReversed', {
            ...common({ payout, source: 'OPERATOR', at }),
            agentpayOrderId: payout.agentpayOrderId,
            utr: payout.utr,
            anomalyId,
            reason,
        }),
        headers: null,
        about: payout,
    };
}
/** `id` names this sighting of the anomaly; it is also its key in the ledger. */
export function messageOf(anomaly, id, at, topics, encode) {
    const key = `${anomaly.merchantId}:${anomaly.payoutId ?? anomaly.orderNo ?? ''}`;
    return {
        shard: shardOf(key),
        topic: topics.anomalies,
        key,
        eventId: id,
        type: 'in.payoutd.PayoutAnomaly',
        value: encode('PayoutAnomaly', {
            merchantId: anomaly.merchantId,
            payoutId: anomaly.payoutId,
            mchOrderNo: anomaly.orderNo,
            kind: anomaly.kind,
            detail: anomaly.detail,
            fingerprints: anomaly.fingerprints ?? null,
            evidence: anomaly.source,
            occurredAt: at,
        }),
        headers: null,
        about: anomaly,
    };
}
