import { anomalyLines, entryLines, section } from "../operations/story-text.js";
import { formatTime } from "../operations/times.js";
import { formatRupees } from "../payout/money.js";
/** A payin for a person to read, in lines. */
export function payinText(payin) {
    const { merchantId, payinId, amount, state, reason, version, checkout, paidAt, dueAt } = payin;
    const facts = [
        ['asked for', formatRupees(amount)],
        ['created', formatTime(payin.createdAt)],
        ['state', `${state}${reason === null ? '' : ` (${reason})`}, version ${version}`],
        ['expires', state === 'open' ? formatTime(payin.expiresAt) : null],
        ['next look', dueAt === null ? null : formatTime(dueAt)],
        ['payOrderId', payin.payOrderId],
        ['UTR', payin.utr],
        ['paid', paidAt === null ? null : formatTime(paidAt)],
        ...(state === 'open' ? Object.entries(checkout ?? {}) : []),
    ];
    return [
        `payin ${payinId} of ${merchantId}`,
        ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(16)}${value}`])),
    ].join('\n');
}
/** The same with its whole history. */
export const payinStoryText = (story) => [
    payinText(story),
    ...section('history', story.history, entryLines),
    ...section('anomalies', story.anomalies, anomalyLines),
].join('\n');
