import { become, change } from "./transition.js";
/**
 * An order that the gateway has was sent, whatever the ledger remembers: that attempt counts again, and then the report
 * settles the payout as any other. What it does not settle (another amount, say) is never sent once more: a person
 * decides.
 */
export function recover(payout, report, note, { settle }, table, now) {
    const sent = payout.attempt === 0;
    const attempted = sent ? { ...payout, attempt: 1 } : payout;
    const decisions = sent ? [change(payout, attempted, 'OPERATOR', { note })] : [];
    const settled = settle(attempted, report, 'QUERY', table, now);
    decisions.push(settled);
    const after = 'change' in settled ? settled.change.after : attempted;
    if (after.state !== 'queued' && after.state !== 'held')
        return { decisions, after, sent };
    const reviewed = become(after, 'review', { reason: 'recovered' });
    decisions.push(change(after, reviewed, 'OPERATOR', { note }));
    return { decisions, after: reviewed, sent };
}
/**
 * A payout that waits here, was sent as its published story tells, and is not at the gateway: where duplicates are not
 * known to be refused, a person decides before it is sent once more. Null: it goes on where it waits.
 */
export function recoverAbsent(payout, exchange, table) {
    const waits = payout.state === 'queued' || payout.state === 'held';
    if (!waits || table.resendWhenAbsent)
        return null;
    return change(payout, become(payout, 'review', { reason: 'proved-absent' }), 'QUERY', exchange);
}
