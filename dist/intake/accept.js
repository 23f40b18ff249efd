import { sealDetails } from "../ledger/details.js";
import { json, storeArrivals, storeDecisions } from "../ledger/ledger.js";
import { beneficiaryHash, beneficiaryIdHash, fingerprint, orderNumber } from "../payout/identifiers.js";
import { anomaly } from "../payout/transition.js";
import { isIdentifier } from "../payout/validate.js";
import { cutText } from "../platform/text.js";
import { holdDoubtful } from "./holds.js";
import { decideOvertaken, fenceReported } from "./overtaken.js";
import { fingerprintsOf, insertCommands, insertPayouts } from "./sql/accept.js";
import { takeTurns } from "./sql/holds.js";
const keyOf = ({ merchantId, payoutId }) => `${merchantId}:${payoutId}`;
/**
 * Takes commands in: each payoutId once, whatever its content. A refused command becomes `rejected` and
 * spends its id; an identical repeat writes nothing; the same id with other content is an anomaly. What looks like
 * an earlier payment, or has other bank details than before, is held for a person as its merchant's terms say. What was
 * cancelled before it came is cancelled.
 * Returns how many were new, and how many contradict what their id stands for.
 */
export async function accept(tx, ledger, keys, arrivals) {
    if (arrivals.length === 0)
        return { fresh: 0, contradicting: 0 };
    const prepared = arrivals.map((arrival) => prepare(arrival, keys, tx.now));
    const first = new Map();
    for (const each of prepared)
        if (!first.has(keyOf(each.payout)))
            first.set(keyOf(each.payout), each);
    const reported = await fenceReported(tx, prepared.map(({ payout }) => payout));
    const compared = prepared.filter(({ terms }) => terms.holdDuplicates);
    if (compared.length > 0) {
        await tx.run(takeTurns, { merchantIds: compared.map(({ payout }) => payout.merchantId) });
    }
    const inserted = new Set((await tx.run(insertPayouts, payoutArrays([...first.values()]))).map(keyOf));
    const fresh = [...first.values()].filter(({ payout }) => inserted.has(keyOf(payout)));
    if (fresh.length > 0) {
        await tx.run(insertCommands, commandArrays(fresh));
        const arrived = await holdDoubtful(tx, fresh);
        await storeArrivals(tx, ledger, arrived);
        const payouts = arrived.map(({ payout }) => payout);
        await storeDecisions(tx, ledger, await decideOvertaken(tx, payouts, reported));
    }
    const repeats = prepared.filter((each) => first.get(keyOf(each.payout)) !== each || !inserted.has(keyOf(each.payout)));
    const contradicting = await contradictions(tx, repeats);
    await storeDecisions(tx, ledger, contradicting);
    return { fresh: fresh.length, contradicting: contradicting.length };
}
/** The payout that a command begins as. */
function prepare(arrival, keys, now) {
    const { command, terms, faults } = arrival;
    const { merchantId, payoutId, batchId, amount, currency, notBefore } = command;
    const refused = faults.length > 0;
    const paysAt = refused ? now : Math.max(notBefore ?? now, now);
    const deadline = (refused ? null : command.deadline) ?? paysAt + terms.deadlineMs;
    const begin = refused
        ? { state: 'rejected', reason: 'faults', ready: false, dueAt: null }
        : paysAt > now
            ? { state: 'held', reason: 'schedule', ready: false, dueAt: Math.min(paysAt, deadline) }
            : { state: 'queued', reason: null, ready: true, dueAt: deadline };
    const payout = {
        ...begin,
        merchantId,
        payoutId,
        // What was refused may hold anything; it is cut to what a column takes.
        batchId: batchId !== null && isIdentifier(batchId) ? batchId : null,
        orderNo: refused ? null : orderNumber(merchantId, payoutId, 1),
        amount,
        currency: cutText(currency, 8),
        version: 1,
        attempt: 0,
        agentpayOrderId: null,
        fee: null,
        utr: null,
        deadline,
        unknownSince: null,
        queries: 0,
        absences: 0,
    };
    return {
        ...arrival,
        payout,
        paysAt,
        fingerprint: fingerprint(command, keys.fingerprint),
        beneficiaryHash: beneficiaryHash(command, keys.fingerprint),
        beneficiaryIdHash: beneficiaryIdHash(command, keys.fingerprint),
        // Here and not where it is stored: while a merchant's turn lasts, others wait.
        sealed: sealDetails(command, keys.sealing),
    };
}
const payoutArrays = (prepared) => ({
    merchantIds: prepared.map(({ payout }) => payout.merchantId),
    payoutIds: prepared.map(({ payout }) => payout.payoutId),
    batchIds: prepared.map(({ payout }) => payout.batchId),
    orderNos: prepared.map(({ payout }) => payout.orderNo),
    amounts: prepared.map(({ payout }) => payout.amount),
    currencies: prepared.map(({ payout }) => payout.currency),
    priorities: prepared.map(({ command, faults }) => (faults.length > 0 ? 0 : command.priority)),
    states: prepared.map(({ payout }) => payout.state),
    reasons: prepared.map(({ payout }) => payout.reason),
    readies: prepared.map(({ payout }) => payout.ready),
    deadlines: prepared.map(({ payout }) => payout.deadline),
    dueAts: prepared.map(({ payout }) => payout.dueAt),
});
/** Faults are shown masked already; everything else that tells who is paid is sealed. */
const commandArrays = (prepared) => ({
    merchantIds: prepared.map(({ payout }) => payout.merchantId),
    payoutIds: prepared.map(({ payout }) => payout.payoutId),
    batchIds: prepared.map(({ payout }) => payout.batchId),
    rowNumbers: prepared.map(({ command }) => command.rowNumber),
    fingerprints: prepared.map(({ fingerprint }) => fingerprint),
    sealeds: prepared.map(({ sealed }) => sealed),
    faults: prepared.map(({ faults }) => (faults.length > 0 ? json(faults) : null)),
    traceparents: prepared.map(({ traceparent }) => traceparent),
    notBefores: prepared.map(({ command, faults }) => (faults.length > 0 ? null : command.notBefore)),
});
/** Repeats whose content differs from what the id stands for. */
async function contradictions(tx, repeats) {
    if (repeats.length === 0)
        return [];
    const stored = await tx.run(fingerprintsOf, {
        merchantIds: repeats.map(({ payout }) => payout.merchantId),
        payoutIds: repeats.map(({ payout }) => payout.payoutId),
    });
    const known = new Map(stored.map((row) => [keyOf(row), row.fingerprint]));
    return repeats.flatMap(({ payout, fingerprint }) => {
        const before = known.get(keyOf(payout));
        if (!before || before.equals(fingerprint))
            return [];
        const fingerprints = [before.toString('hex'), fingerprint.toString('hex')];
        const [accepted, differing] = fingerprints.map((each) => each.slice(0, 16));
        const detail = `the id stands for ${accepted}, the new content is ${differing}: it was not taken in`;
        const odd = anomaly(payout, 'COMMAND', 'same-id-other-content', detail, null);
        return [{ anomaly: { ...odd.anomaly, fingerprints } }];
    });
}
