import { Agenda } from "./agenda.js";
import { behaviourOf } from "./magic.js";
import { acceptOrder, afterDelivery, PROCESSING, SUCCESS, settle } from "./order.js";
import { agentpayOrderId, letterFields } from "./order-fields.js";
import { idIn } from "./sequence.js";
import { feeOf } from "./terms.js";
const DUPLICATE = {
    retCode: 'DUPLICATE_ORDER',
    retMsg: 'mchOrderNo: there is an order with this number',
};
const SHORT = {
    retCode: 'BALANCE_SHORT',
    retMsg: 'the available balance does not cover amount and fee',
};
const TOO_FAST = { retCode: 'TOO_FAST', retMsg: 'too many requests: try again later' };
/** The life of payouts: taken, settled, called back about. Whatever it returns is to be said after a commit. */
export class Payouts {
    #agenda;
    #firstDeliveries = new Map();
    #parts;
    #stopped = false;
    constructor(parts) {
        this.#parts = parts;
        this.#agenda = new Agenda(parts.clock, (due) => this.#advance(due));
        for (const order of parts.orders.open())
            this.#agenda.add(nextStep(order), order);
    }
    /** Takes an order whose parameters keep the rules, or says why not. */
    apply(merchant, params, now) {
        const { store, orders, sequence, books, terms } = this.#parts;
        const { mchOrderNo = '', accountNo = '', extra = '', notifyUrl = '' } = params;
        const amount = BigInt(params.amount ?? '');
        const present = orders.byNumber(merchant.id, mchOrderNo);
        if (present && merchant.dialect.duplicateApply === 'refused') {
            store.write(() => orders.countApply(present));
            return { kind: 'refused', refusal: DUPLICATE };
        }
        const behaviour = behaviourOf(accountNo);
        const { obstacle } = behaviour;
        const tries = obstacle ? orders.tries(merchant.id, mchOrderNo) : 0;
        if (obstacle && tries < obstacle.tries) {
            store.write(() => orders.countTry(merchant.id, mchOrderNo));
            return obstacle.kind === 'too-fast'
                ? { kind: 'refused', refusal: TOO_FAST }
                : { kind: 'turned-away', manner: { kind: obstacle.kind } };
        }
        const fee = feeOf(amount, terms.fees);
        if (!books.covers(merchant.id, { amount, fee }))
            return { kind: 'refused', refusal: SHORT };
        const order = acceptOrder({ id: sequence.next(), merchantId: merchant.id, mchOrderNo, amount, accountNo, extra, notifyUrl }, { fee, behaviour, settleMs: terms.settleMs, tries }, now);
        store.write(() => {
            orders.add(order);
            books.freeze(merchant.id, order.id, order);
        });
        this.#agenda.add(order.settleAt, order);
        return { kind: 'taken', order, manner: behaviour.manner };
    }
    /** The order that a query names; undefined if there is none, or the two numbers are of different ones. */
    find(merchant, params) {
        const { orders } = this.#parts;
        const { mchOrderNo, agentpayOrderId: platformNo } = params;
        const order = mchOrderNo
            ? orders.byNumber(merchant.id, mchOrderNo)
            : orders.byId(idIn(platformNo ?? '', 'AP') ?? 0);
        if (order?.merchantId !== merchant.id)
            return undefined;
        return platformNo && agentpayOrderId(order) !== platformNo ? undefined : order;
    }
    /** Resolves after the first callback of `order` was tried, whatever came of it, or when aborted. */
    firstDelivery(order, signal) {
        return new Promise((resolve) => {
            this.#firstDeliveries.set(order.id, resolve);
            signal.addEventListener('abort', () => resolve(), { once: true });
        });
    }
    /** Nothing more falls due; a callback that is under way is sent again at the next start. */
    stop() {
        this.#stopped = true;
        this.#agenda.stop();
    }
    #advance(due) {
        const { store, clock } = this.#parts;
        const now = clock.now();
        const settled = due.filter(({ status }) => status === PROCESSING);
        if (settled.length > 0) {
            store.write(() => {
                for (const order of settled)
                    this.#settle(order, now);
            });
        }
        // Not before the end is in the file: after a crash the order would end again, with another story.
        void store.committed().then(() => {
            for (const order of due)
                this.#deliver(order);
        }, 
        // Nothing may be said any more; whoever asks is answered SYSTEM_ERROR until a restart.
        () => undefined);
    }
    #settle(order, now) {
        const { books, orders } = this.#parts;
        settle(order, now);
        if (order.status === SUCCESS)
            books.pay(order.merchantId, order.id, order);
        else
            books.release(order.merchantId, order.id, order);
        orders.saveSettled(order);
    }
    #deliver(order) {
        const { sender, merchants } = this.#parts;
        const letter = order.letters[order.letter];
        if (this.#stopped || letter === undefined)
            return;
        const seal = { merchant: merchants.of(order), signed: letter === 'forgery' ? 'wrongly' : 'well' };
        void sender.send(order.notifyUrl, letterFields(order, letter), seal).then((delivery) => {
            if (!this.#stopped)
                this.#delivered(order, delivery);
        });
    }
    #delivered(order, delivery) {
        const { store, orders, deliveries, clock, terms } = this.#parts;
        afterDelivery(order, delivery.acknowledged, terms.callbackRetries, clock.now());
        store.write(() => {
            orders.saveDelivered(order);
            deliveries.add(order.id, order.callbacksSent, delivery);
        });
        if (order.callbackAt !== null)
            this.#agenda.add(order.callbackAt, order);
        this.#firstDeliveries.get(order.id)?.();
        this.#firstDeliveries.delete(order.id);
    }
}
const nextStep = (order) => order.status === PROCESSING ? order.settleAt : (order.callbackAt ?? order.settleAt);
