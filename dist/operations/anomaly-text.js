import { table } from "../platform/table.js";
import { acknowledgedText, exchangeLines, repeatsText } from "./story-text.js";
import { formatTime } from "./times.js";
const HEADINGS = ['ANOMALY', 'SINCE', 'TIMES', 'KIND', 'ABOUT', 'ACKNOWLEDGED', 'WHAT'];
/** A table with a line for each anomaly. */
export function anomalyListText(anomalies) {
    const rows = anomalies.map((anomaly) => [
        anomaly.anomalyId,
        formatTime(anomaly.at),
        String(anomaly.times),
        anomaly.kind,
        anomaly.payoutId ?? anomaly.orderNo ?? '',
        anomaly.acknowledgedBy === null ? 'no' : `by ${anomaly.acknowledgedBy}`,
        anomaly.detail,
    ]);
    return table([HEADINGS, ...rows], ['', '', '>', '', '', '', '']).join('\n');
}
/** One anomaly for a person to read, with all that was said on the wire. */
export const anomalyText = (anomaly) => [
    `anomaly ${anomaly.anomalyId}: ${anomaly.kind}`,
    `  ${anomaly.detail}`,
    `  ${about(anomaly)}, by ${anomaly.source} at ${formatTime(anomaly.at)}${repeatsText(anomaly)}`,
    `  ${acknowledgedText(anomaly) ?? 'nobody has acknowledged it'}`,
    ...exchangeLines(anomaly.source, anomaly.exchange),
    ...(anomaly.acknowledgedAt === null ? [`  ${next(anomaly)}`] : []),
].join('\n');
/** What follows where the gateway paid what was told as failed. */
export const TELL_THEM = 'it was told as failed, so whoever asked for it may pay it again: tell them, then payoutd anomaly acknowledge';
/** What a person does about it. */
function next({ anomalyId, kind, payoutId, payoutState, source }) {
    if (kind === 'contradiction' && (source === 'CALLBACK' || source === 'QUERY')) {
        if (payoutState === 'failed')
            return `${TELL_THEM} ${anomalyId}`;
        if (payoutState === 'paid')
            return `if its money came back: payoutd payout reverse ${payoutId}; if not: payoutd anomaly acknowledge ${anomalyId}`;
    }
    return `once it is looked into: payoutd anomaly acknowledge ${anomalyId}`;
}
const about = ({ payoutId, orderNo }) => payoutId === null ? `about order ${orderNo}` : `about payout ${payoutId}, order ${orderNo}`;
