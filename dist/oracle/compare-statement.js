/**
 * Everything in which a statement and payoutd do not say the same. `paid` are the payouts that the statement should
 * have, `named` those that its lines name, whenever they were accepted and whatever became of them.
 */
export function compareStatement(lines, paid, named) {
    const { pairs, disputes, strangers } = pair(lines, named);
    return [
        ...utrTwice(lines),
        ...utrOfTwoPayouts(disputes),
        ...onlyInStatement(strangers),
        ...notPaidHere(pairs),
        ...amountsDiffer(pairs),
        ...utrsDiffer(pairs),
        ...notInStatement(paid, [
            ...pairs.map(({ payout }) => payout),
            ...disputes.flatMap(({ claimants }) => claimants),
        ]),
    ];
}
/** A line belongs to the payout of its UTR, or else to that of its order number. */
function pair(lines, named) {
    const byUtr = Map.groupBy(named, ({ utr }) => utr);
    const byOrder = new Map(named.map((payout) => [payout.orderNo, payout]));
    const pairs = [];
    const disputes = [];
    const strangers = [];
    for (const line of lines) {
        const claimants = (line.utr !== null && byUtr.get(line.utr)) || [];
        const payout = claimants[0] ?? (line.mchOrderNo !== null && byOrder.get(line.mchOrderNo));
        if (claimants.length > 1)
            disputes.push({ line, claimants });
        else if (payout)
            pairs.push({ line, payout });
        else
            strangers.push(line);
    }
    return { pairs, disputes, strangers };
}
/** One transfer cannot stand on a statement twice: the second is another payment, or a mistake. */
function utrTwice(lines) {
    const first = new Map();
    return lines.flatMap(({ row, utr }) => {
        if (utr === null)
            return [];
        const before = first.get(utr);
        if (before === undefined)
            first.set(utr, row);
        return before === undefined
            ? []
            : [{ kind: 'utr-twice', row, utr, payoutId: null, here: 'none', there: `row ${before} too` }];
    });
}
/** One transfer cannot have paid two payouts. */
const utrOfTwoPayouts = (disputes) => disputes.flatMap(({ line, claimants: [first, ...others] }) => others.map((payout) => about('utr-of-two-payouts', line, payout, `${first?.payoutId} too`, line.amount.toString())));
/** Money left for no payout of ours. */
const onlyInStatement = (strangers) => strangers.map(({ row, utr, amount }) => ({
    kind: 'only-in-statement',
    row,
    utr,
    payoutId: null,
    here: 'none',
    there: amount.toString(),
}));
const notPaidHere = (pairs) => pairs.flatMap(({ line, payout }) => payout.state === 'paid' ? [] : [about('not-paid-here', line, payout, payout.state, 'paid')]);
const amountsDiffer = (pairs) => pairs.flatMap(({ line, payout }) => payout.amount === line.amount
    ? []
    : [about('statement-amount', line, payout, payout.amount.toString(), line.amount.toString())]);
/** Found by the order number. A line without a UTR says nothing about it. */
const utrsDiffer = (pairs) => pairs.flatMap(({ line, payout }) => line.utr === null || payout.utr === line.utr
    ? []
    : [about('statement-utr', line, payout, payout.utr ?? 'none', line.utr)]);
function notInStatement(paid, found) {
    const stated = new Set(found.map(({ payoutId }) => payoutId));
    return paid
        .filter(({ payoutId }) => !stated.has(payoutId))
        .map(({ payoutId, utr, amount }) => ({
        kind: 'not-in-statement',
        row: null,
        utr,
        payoutId,
        here: amount.toString(),
        there: 'none',
    }));
}
const about = (kind, { row, utr }, { payoutId }, here, there) => ({ kind, row, utr, payoutId, here, there });
