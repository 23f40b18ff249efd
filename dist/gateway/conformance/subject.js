import { parseBaseUrl } from "../client.js";
import { readBody } from "../hear.js";
import { reqTimeIn } from "../req-time.js";
import { encode, params } from "../request.js";
import { signature, verify } from "../sign.js";
import { readSignedQuery } from "../signed-query.js";
import { createTransport } from "../transport.js";
import { Differs, NotTried } from "./demand.js";
import { codeOf, succeeded, typesIn } from "./reply.js";
/** Paise: one rupee, the least that every payin and payout is about. */
const AMOUNT = 100n;
/** The server that is asked, and the orders that several cases look at: each is made when first needed. */
export class Subject {
    #settings;
    #transport;
    #prefix;
    #reqTime;
    #run;
    #orders = 0;
    constructor(settings) {
        const { origin, prefix } = parseBaseUrl(settings.baseUrl);
        const { tls, dialect, clock, ids } = settings;
        this.#settings = settings;
        this.#prefix = prefix;
        this.#transport = createTransport({
            origin,
            connections: 1,
            sendTimeoutMs: dialect.sendTimeoutMs,
            tls,
            clock,
        });
        this.#reqTime = reqTimeIn(dialect.reqTimeZone);
        this.#run = ids.uuid().replaceAll('-', '').slice(0, 12).toUpperCase();
    }
    get dialect() {
        return this.#settings.dialect;
    }
    get callbacks() {
        return this.#settings.callbacks;
    }
    get patienceMs() {
        return this.#settings.patienceMs;
    }
    /** Throws NotTried where nobody can make things happen around the server. */
    get world() {
        const { world } = this.#settings;
        if (!world)
            throw new NotTried('nobody pays or declines there');
        return world;
    }
    get passTime() {
        return this.#settings.world?.passTime;
    }
    /** Throws NotTried where nobody is to be paid. */
    get beneficiary() {
        const { beneficiary } = this.#settings;
        if (!beneficiary)
            throw new NotTried('no beneficiary was given');
        return beneficiary;
    }
    get canBePaid() {
        return this.#settings.beneficiary !== null;
    }
    /** Whether a callback's query string is signed by the server. */
    isSigned(query) {
        const { dialect, key } = this.#settings;
        return readSignedQuery(query, dialect.sign, key).kind === 'verified';
    }
    /** A number that no order has yet. */
    newOrderNo() {
        return `CONF${this.#run}${++this.#orders}`;
    }
    /** Every field that a payin needs. */
    payinFields(over = {}) {
        return {
            mchId: this.#settings.mchId,
            mchOrderNo: this.newOrderNo(),
            amount: AMOUNT,
            currency: 'INR',
            notifyUrl: this.callbacks.urlOf('success'),
            ...over,
        };
    }
    /** Every field that a payout needs. Throws NotTried where nobody is to be paid. */
    payoutFields(over = {}) {
        const { accountName, accountNo, values } = this.beneficiary;
        return {
            ...this.payinFields(),
            accountName,
            accountNo,
            accountBankCode: 'BANK',
            extra: JSON.stringify({ value: values[0] }),
            ...over,
        };
    }
    /** What every question of this kind needs but the order's number. */
    queryFields(operation, over = {}) {
        const { mchId, clock } = this.#settings;
        const kind = operation === 'payinQuery' ? { executeNotify: false } : { reqTime: this.#reqTime(clock.now()) };
        return { mchId, ...kind, ...over };
    }
    recoveryFields(payOrderId, channelPayNo) {
        return { mchId: this.#settings.mchId, payOrderId, channelPayNo };
    }
    /**
     * Makes one call, at the dialect's path unless another is given. `sign` makes a signature that a stranger
     * would, or none. Throws Differs where there is no answer.
     */
    async ask(operation, given, { path = this.dialect.paths[operation], sign = 'good' } = {}) {
        const { key, dialect } = this.#settings;
        const fields = new Map(params(Object.entries(given)));
        const signed = signature(fields, sign === 'wrong' ? `not ${key}` : key, dialect.sign, 'requests');
        if (sign !== 'none')
            fields.set('sign', signed);
        const sent = await this.#transport.send(encode(fields, this.#prefix + path, dialect.body), () => true);
        if (sent.kind !== 'answered')
            throw new Differs(`no answer to ${operation}: ${sent.reason}`);
        const { text, fields: answer } = readBody(sent);
        return {
            httpStatus: sent.httpStatus,
            fields: answer ?? new Map(),
            types: answer && text !== null ? typesIn(text, answer) : new Map(),
            sign: answer ? verify(answer, key, dialect.sign, 'answers') : 'unsigned',
        };
    }
    /** A query about an order of ours, by our number. */
    query(operation, mchOrderNo, over = {}) {
        return this.ask(operation, this.queryFields(operation, { mchOrderNo, ...over }));
    }
    payin = once(() => this.newPayin());
    payout = once(() => this.newPayout());
    paidPayin = once(async () => {
        const { world } = this;
        const payin = await this.newPayin();
        await world.pay(payin.platformNo);
        return payin;
    });
    declinedPayin = once(async () => {
        const { world } = this;
        const payin = await this.newPayin();
        await world.decline(payin.platformNo);
        return payin;
    });
    /** A payin paid by a payment that the gateway was not told about, with its recovery. */
    recoveredPayin = once(async () => {
        const { world } = this;
        const payin = await this.newPayin();
        const utr = await world.payUntold(payin.platformNo);
        return {
            ...payin,
            utr,
            reply: await this.ask('payinRecovery', this.recoveryFields(payin.platformNo, utr)),
        };
    });
    failedPayout = once(() => this.newPayout({ accountNo: this.world.failingAccountNo }));
    /** Throws NotTried where it is not taken: another case says so. */
    newPayin(over = {}) {
        return this.#take('payinCreate', this.payinFields(over), 'payOrderId');
    }
    /** Throws NotTried where it is not taken: another case says so. */
    newPayout(over = {}) {
        return this.#take('apply', this.payoutFields(over), 'agentpayOrderId');
    }
    async #take(operation, given, platformNo) {
        const reply = await this.ask(operation, given);
        if (!succeeded(reply))
            throw new NotTried(`${operation} was refused with ${codeOf(reply)}`);
        return { mchOrderNo: String(given.mchOrderNo), platformNo: reply.fields.get(platformNo) ?? '', reply };
    }
    close() {
        return this.#transport.close();
    }
}
function once(make) {
    let made;
    return () => (made ??= make());
}
