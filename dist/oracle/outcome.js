import { createHash } from 'node:crypto';
/** What an order of this payout has as its `payee` in the gateway's books (src/sandbox/README.md, "The books"). */
export const payeeOf = ({ accountNo, ifsc, vpa, }) => createHash('sha256')
    .update(`${accountNo}\n${vpa ?? ifsc}`)
    .digest('hex');
/** Brings together what was asked for, what payoutd published and keeps, and what the gateway did. */
export function outcomesOf(asked, told, kept, orders) {
    const payouts = new Map(asked.map((each) => [whose(each), empty(each)]));
    const ownerOf = new Map();
    for (const event of told.events) {
        const outcome = payouts.get(whose(event));
        if (!outcome)
            continue;
        outcome.events.push(event);
        if (event.mchOrderNo !== null)
            ownerOf.set(event.mchOrderNo, whose(event));
    }
    const strayPayouts = [];
    for (const each of kept) {
        const outcome = payouts.get(whose(each));
        if (!outcome) {
            strayPayouts.push(each);
            continue;
        }
        outcome.kept = each;
        for (const orderNo of [each.orderNo, ...each.attempts])
            if (orderNo)
                ownerOf.set(orderNo, whose(each));
    }
    const strayEnds = [];
    for (const result of told.results) {
        const outcome = payouts.get(whose(result));
        if (!outcome)
            strayEnds.push(result);
        else if (!outcome.ends.some(({ eventId }) => eventId === result.eventId))
            outcome.ends.push(result);
    }
    const strayOrders = [];
    for (const order of orders) {
        const outcome = payouts.get(ownerOf.get(order.mchOrderNo) ?? '');
        if (outcome)
            outcome.orders.push(order);
        else
            strayOrders.push(order);
    }
    for (const outcome of payouts.values())
        outcome.state = latest(outcome.events)?.toState ?? null;
    return { payouts: [...payouts.values()], strayEnds, strayPayouts, strayOrders };
}
/** Two merchants may use the same payoutId. */
export const whose = ({ merchantId, payoutId }) => JSON.stringify([merchantId, payoutId]);
const empty = (asked) => ({
    asked,
    ends: [],
    events: [],
    state: null,
    kept: null,
    orders: [],
});
const latest = (events) => events.reduce((a, b) => (a && a.version >= b.version ? a : b), undefined);
/** How often the gateway paid it, over all its orders. */
export const timesPaid = ({ orders }) => orders.reduce((times, order) => times + order.timesPaid, 0);
/** A person has to decide: the only way for a payout not to have ended. */
export const isInReview = ({ ends, state }) => ends.length === 0 && state === 'REVIEW';
