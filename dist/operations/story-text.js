import { awaitsRelease } from "../payout/holds.js";
import { formatRupees } from "../payout/money.js";
import { amountAndBeneficiary, placeInBatch } from "./asked-for.js";
import { holdText } from "./hold-text.js";
import { inFull } from "./list-text.js";
import { formatTime } from "./times.js";
/** The story of a payout for a person to read, in lines. */
export function storyText(story) {
    const { payout, beneficiary, faults, holds, attempts, history, anomalies, reversal } = story;
    const { merchantId, payoutId, state, reason, fee, dueAt, deadline } = payout;
    const facts = [
        ['asked for', amountAndBeneficiary(story)],
        ['remark', beneficiary?.remark ?? null],
        ['batch', placeInBatch(story)],
        ['accepted', formatTime(payout.acceptedAt)],
        ['not before', payout.notBefore === null ? null : formatTime(payout.notBefore)],
        ['deadline', `${formatTime(deadline)}${dueAt === deadline ? `, when ${atDeadline(payout)}` : ''}`],
        ['state', `${inFull(state, reason)}, version ${payout.version}`],
        [
            'returned',
            reversal &&
                `as ${reversal.reversedBy} confirmed at ${formatTime(reversal.at)}: ${reversal.reason} (anomaly ${reversal.anomalyId})`,
        ],
        ['next look', dueAt === null || dueAt === deadline ? null : formatTime(dueAt)],
        ['order number', payout.orderNo],
        ['agentpayOrderId', payout.agentpayOrderId],
        ['UTR', payout.utr],
        ['fee', fee === null ? null : formatRupees(fee)],
    ];
    return [
        `payout ${payoutId} of ${merchantId}`,
        ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(16)}${value}`])),
        ...section('refused because', faults, ({ field, message, found }) => [`${field} ${message} (${found})`]),
        ...section(awaitsRelease(payout) ? 'held because' : 'was held because', holds, (hold) => [
            holdText(hold),
        ]),
        ...section('attempts', attempts, ({ attempt, orderNo, owner, claimedAt, leaseUntil }) => [
            `${attempt}  order ${orderNo}, claimed ${formatTime(claimedAt)} by process ${owner}, lease until ${formatTime(leaseUntil)}`,
        ]),
        ...section('history', history, entryLines),
        ...section('anomalies', anomalies, anomalyLines),
    ].join('\n');
}
/** What time does to a payout at its deadline, as `whenDue` decides. */
const atDeadline = ({ state, attempt }) => attempt === 0 && (state === 'held' || state === 'queued') ? 'it is cancelled' : 'a person decides about it';
/** Lines under a title; none where there are no items. */
export function section(title, items, lines) {
    return items.length === 0 ? [] : ['', title, ...items.flatMap(lines).map((line) => `  ${line}`)];
}
/** One entry of a history, with what was said on the wire. */
export function entryLines({ at, version, fromState, toState, reason, source, exchange, times, lastAt, }) {
    const moved = version !== null;
    const what = moved ? `${fromState ?? '(new)'} → ${inFull(toState, reason)}` : `stays ${toState}`;
    return [
        `${formatTime(at)}  ${moved ? `v${version}` : '  '}  ${what}  by ${source}${repeatsText({ times, lastAt })}`,
        ...exchangeLines(source, exchange),
    ];
}
export function anomalyLines(sighting) {
    const { anomalyId, at, kind, detail, source, exchange } = sighting;
    const acknowledged = acknowledgedText(sighting);
    return [
        `${formatTime(at)}  ${kind}: ${detail}  by ${source}${repeatsText(sighting)}  (${anomalyId})`,
        ...exchangeLines(source, exchange),
        ...(acknowledged === null ? [] : [INDENT + acknowledged]),
    ];
}
/** `, 12 times, at last at 2026-11-21 …`; nothing for what was said once. */
export const repeatsText = ({ times, lastAt }) => lastAt === null ? '' : `, ${times} times, at last at ${formatTime(lastAt)}`;
/** Who acknowledged an anomaly, when and why; null: nobody. */
export const acknowledgedText = (anomaly) => anomaly.acknowledgedAt === null
    ? null
    : `acknowledged by ${anomaly.acknowledgedBy} at ${formatTime(anomaly.acknowledgedAt)}: ${anomaly.acknowledgedReason}`;
const INDENT = '    ';
/** What was said on the wire, as it was kept: masked already. A callback is a request of the gateway's. */
export function exchangeLines(source, exchange) {
    if (!exchange)
        return [];
    const { request, response, httpStatus, tookMs, note } = exchange;
    const outcome = [
        httpStatus === undefined ? null : `HTTP ${httpStatus}`,
        tookMs === undefined ? null : `${tookMs} ms`,
        note ?? null,
    ].filter((part) => part !== null);
    return [
        ...(request ? [`${INDENT}${source === 'CALLBACK' ? 'callback' : 'request '}  ${pairs(request)}`] : []),
        ...(response ? [`${INDENT}response  ${pairs(response)}`] : []),
        ...(outcome.length > 0 ? [`${INDENT}${outcome.join(', ')}`] : []),
    ];
}
/** Fields of what was said, in one line. */
export const pairs = (fields) => Object.entries(fields)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ');
