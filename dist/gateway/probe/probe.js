import { balanceParams } from "../balance.js";
import { loadDialect } from "../dialect-file.js";
import { payinQueryParams } from "../payin-query.js";
import { queryParams } from "../query.js";
import { reqTimeIn } from "../req-time.js";
import { readAmount, readMessage } from "../values.js";
import { openConversation } from "./conversation.js";
import { findingsOf } from "./findings.js";
import { Signing } from "./signing.js";
const BODIES = ['form', 'json', 'query'];
/** Gateway contract, "Balance query" and "Query payout order"; the default first. */
const BALANCE_PATHS = ['/api/agentpay/query_balance', '/api/agentpay/query_order'];
const PAYOUT_QUERY_PATHS = ['/api/pay/orderquery', '/api/pay/query_order'];
const PAYIN_QUERY_PATH = '/api/pay/orderquery';
/** Parameters that the contract does not have. The two sorts put these in different orders. */
const SORTED_APART = [
    ['probe', '1'],
    ['probe1', '1'],
];
const EMPTY = [['probe', '']];
/**
 * Finds out how a gateway wants to be spoken to, by balance calls and queries alone: about `knownOrder`, and
 * about an order that nobody has. What only other calls would show keeps its default. No retCode but SUCCESS is
 * known beforehand: a query was understood if its reply is another than with a wrong signature. `pace` is waited
 * for before each call. Throws on a base URL that is none.
 */
export async function probe(settings) {
    const conversation = openConversation(settings);
    try {
        return await interview(conversation.ask, settings);
    }
    finally {
        await conversation.close();
    }
}
async function interview(ask, settings) {
    const { mchId, key, knownOrder, clock, ids } = settings;
    const formatReqTime = reqTimeIn(loadDialect('default').reqTimeZone);
    const reqTime = () => formatReqTime(clock.now());
    const balance = (extra = []) => new Map([...balanceParams(mchId, reqTime()), ...extra]);
    const signing = new Signing(ask, key);
    const door = await openDoor(signing, balance);
    if ('kind' in door)
        return door;
    await signing.call(door, balance(SORTED_APART), tellsBalance);
    await signing.call(door, balance(EMPTY), tellsBalance);
    const toStranger = await signing.wrongly(door, balance());
    const found = knownOrder === null ? null : await findOrder(signing, door, knownOrder, mchId, reqTime);
    const absentOrder = `PROBE${ids.uuid().replaceAll('-', '').slice(0, 25).toUpperCase()}`;
    const absentBy = { mchOrderNo: absentOrder };
    const payoutQueries = [];
    for (const path of PAYOUT_QUERY_PATHS) {
        payoutQueries.push(await askBoth(signing, { ...door, path }, queryParams(absentBy, mchId, reqTime())));
    }
    const payinQuery = await askBoth(signing, { ...door, path: PAYIN_QUERY_PATH }, payinQueryParams(absentBy, mchId, false));
    const { ways } = signing;
    if (ways.length === 0)
        return { kind: 'contradiction' };
    const answering = payoutQueriesAmong(payoutQueries, payinQuery);
    const queries = [...answering, payinQuery];
    const seen = {
        balance: door,
        balanceIsGuarded: !(toStranger.kind === 'answer' && tellsBalance(toStranger)),
        ways,
        payoutQueryPaths: answering.map(({ path }) => path),
        payinQueryPath: payinQuery.understood.length > 0 ? payinQuery.path : null,
        knownOrder: knownOrder === null ? 'not-given' : (found ?? 'not-found'),
        failures: queries.flatMap(({ understood }) => understood).filter(({ retCode }) => retCode !== 'SUCCESS'),
        toStrangers: [toStranger, ...queries.map(({ stranger }) => stranger)].filter(isAnswer),
    };
    return { kind: 'found', ...findingsOf(seen) };
}
/** The first place where the balance is told, or why there is none. */
async function openDoor(signing, balance) {
    const heard = new Set();
    for (const body of BODIES) {
        for (const path of BALANCE_PATHS) {
            const { answers, replies } = await signing.call({ path, body }, balance(), tellsBalance);
            if (answers.length > 0)
                return { path, body };
            const [first] = replies;
            if (heard.size === 0 && first?.kind === 'silence')
                return { kind: 'not-reached', reason: first.what };
            for (const reply of replies)
                heard.add(inWords(reply));
        }
    }
    return { kind: 'no-balance', heard: [...heard] };
}
/** The first path that finds the order by one of its numbers, with what it said; null where none does. */
async function findOrder(signing, place, order, mchId, reqTime) {
    for (const path of PAYOUT_QUERY_PATHS) {
        for (const by of [{ mchOrderNo: order }, { agentpayOrderId: order }]) {
            const [name] = Object.keys(by);
            const { answers } = await signing.call({ ...place, path }, queryParams(by, mchId, reqTime()), ({ retCode, fields }) => retCode === 'SUCCESS' && fields.get(name) === order);
            if (answers[0])
                return { path, answer: answers[0] };
        }
    }
    return null;
}
/**
 * Those that were understood as payout queries of an absent order. Payin queries share the first path: where the
 * other says what a payin query of an absent order is told and the first says something else, the first took it for
 * a payin query that lacks something.
 */
function payoutQueriesAmong(asked, payinQuery) {
    const understood = asked.filter((each) => each.understood.length > 0);
    const codeOf = (each) => each?.understood[0]?.retCode;
    const shared = understood.find(({ path }) => path === PAYIN_QUERY_PATH);
    const other = understood.find(({ path }) => path !== PAYIN_QUERY_PATH);
    const isPayin = shared && other && codeOf(other) === codeOf(payinQuery) && codeOf(shared) !== codeOf(payinQuery);
    return isPayin ? [other] : understood;
}
/** Asks the same with a wrong signature and with a good one. */
async function askBoth(signing, place, params) {
    const stranger = await signing.wrongly(place, params);
    const { answers } = await signing.call(place, params, (answer) => isOther(answer, stranger));
    return { path: place.path, stranger, understood: answers };
}
function isOther(answer, stranger) {
    if (stranger.kind !== 'answer')
        return stranger.kind === 'other';
    const compared = ({ retCode, fields }) => JSON.stringify([retCode, fields.get('retMsg') ?? null, Boolean(fields.get('sign'))]);
    return compared(answer) !== compared(stranger);
}
const tellsBalance = ({ retCode, fields }) => retCode === 'SUCCESS' && readAmount(fields.get('availableAmount')) !== null;
const isAnswer = (reply) => reply.kind === 'answer';
const inWords = (reply) => reply.kind === 'answer' ? `retCode ${readMessage(reply.retCode, [])}` : reply.what;
