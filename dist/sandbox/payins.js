import { Agenda } from "./agenda.js";
import { createPayin, failed, PAID, paid, WAITING } from "./payin.js";
import { payOrderId } from "./payin-fields.js";
import { utrOf } from "./sequence.js";
const EXPIRED = 'The order expired before it was paid';
const DECLINED = 'The bank of the payer declined the payment';
const refused = (retCode, retMsg) => ({
    kind: 'refused',
    refusal: { retCode, retMsg },
});
const ENDED = refused('ORDER_ENDED', 'the order has ended');
/** The life of payins: taken, paid or not, settled, recovered. Whatever it returns is to be said after a commit. */
export class Payins {
    #parts;
    #agenda;
    constructor(parts) {
        this.#parts = parts;
        this.#agenda = new Agenda(parts.clock, (due) => this.#advance(due));
        for (const payin of parts.payins.open())
            this.#plan(payin);
    }
    /** Takes an order whose parameters keep the rules, or says why not. */
    create(merchant, params, now) {
        const { store, payins, sequence, terms } = this.#parts;
        const { mchOrderNo = '', notifyUrl = '', returnUrl } = params;
        if (payins.byNumber(merchant.id, mchOrderNo)) {
            return refused('DUPLICATE_ORDER', 'mchOrderNo: there is an order with this number');
        }
        const amount = BigInt(params.amount ?? '');
        const wanted = { mchOrderNo, amount, notifyUrl, returnUrl: returnUrl || null };
        const payin = createPayin({ id: sequence.next(), merchantId: merchant.id, ...wanted }, terms, now);
        store.write(() => payins.add(payin));
        this.#plan(payin);
        return { kind: 'done', payin };
    }
    /** The payin that a query names; undefined if there is none, or the two numbers are of different ones. */
    find(merchant, params) {
        const { payins } = this.#parts;
        const { mchOrderNo, payOrderId: platformNo } = params;
        const payin = mchOrderNo
            ? payins.byNumber(merchant.id, mchOrderNo)
            : payins.byPlatformNo(platformNo ?? '');
        if (payin?.merchantId !== merchant.id)
            return undefined;
        return platformNo && payOrderId(payin) !== platformNo ? undefined : payin;
    }
    /** Makes a payin paid by a payment that nobody told about, even one that has failed or expired since. */
    recover(merchant, payin, utr, now) {
        const { store, payments, books } = this.#parts;
        const payment = payments.byUtr(merchant.id, utr);
        if (payin.status === PAID) {
            return payin.utr === utr
                ? { kind: 'done', payin }
                : refused('ORDER_PAID', 'payOrderId: the order is paid, by another payment');
        }
        if (!payment)
            return refused('UTR_NOT_FOUND', 'channelPayNo: no payment has this UTR');
        if (payment.claimedBy !== null)
            return refused('UTR_USED', 'channelPayNo: another order has this payment');
        if (payment.amount !== payin.amount) {
            return refused('AMOUNT_MISMATCH', 'channelPayNo: the payment is of another amount than the order');
        }
        return store.write(() => {
            payments.claim(payment, payin.id);
            books.match(payin.merchantId, payin.id, payin);
            return this.#pay(payin, utr, now);
        });
    }
    /** The payer pays, and the gateway learns of it. */
    pay(payin) {
        const { store, books, clock } = this.#parts;
        if (payin.status !== WAITING)
            return ENDED;
        return store.write(() => {
            const utr = this.#payment(payin, payin.id);
            books.collect(payin.merchantId, payin.id, payin);
            return this.#pay(payin, utr, clock.now());
        });
    }
    /** The payer pays, and the gateway is not told for which order: only a recovery by UTR finds the money. */
    payUntold(payin) {
        const { store, books } = this.#parts;
        if (payin.status !== WAITING)
            return ENDED;
        store.write(() => {
            this.#payment(payin, null);
            books.arrive(payin.merchantId, payin.id, payin.amount);
        });
        return { kind: 'done', payin };
    }
    /** The bank of the payer says no. */
    decline(payin) {
        return this.#fail(payin, DECLINED);
    }
    /** The time to pay is over, now. */
    expire(payin) {
        return this.#fail(payin, EXPIRED);
    }
    /** Nothing more falls due. */
    stop() {
        this.#agenda.stop();
    }
    #payment(payin, claimedBy) {
        const { payments, sequence, clock } = this.#parts;
        const { merchantId, amount } = payin;
        const id = sequence.next();
        const madeAt = clock.now();
        const utr = utrOf(id, madeAt);
        payments.add({ id, merchantId, utr, amount, madeAt, madeFor: payin.id, claimedBy });
        return utr;
    }
    #pay(payin, utr, now) {
        return this.#save(paid(payin, utr, this.#parts.terms, now));
    }
    #fail(payin, errorMessage) {
        const { store, clock } = this.#parts;
        if (payin.status !== WAITING)
            return ENDED;
        return store.write(() => this.#save(failed(payin, errorMessage, clock.now())));
    }
    #save(payin) {
        const { payins, notices } = this.#parts;
        payins.save(payin);
        this.#plan(payin);
        notices.schedule(payin);
        return { kind: 'done', payin };
    }
    #plan({ id, status, expiresAt, availableAt }) {
        const next = status === WAITING ? expiresAt : availableAt;
        if (next !== null)
            this.#agenda.add(next, id);
    }
    #advance(due) {
        const { payins, clock } = this.#parts;
        const now = clock.now();
        for (const id of due) {
            const payin = payins.byId(id);
            if (payin?.status === WAITING && payin.expiresAt <= now)
                this.expire(payin);
            else if (payin && payin.availableAt !== null && payin.availableAt <= now)
                this.#settle(payin);
        }
    }
    #settle(payin) {
        const { store, payins, books } = this.#parts;
        store.write(() => {
            books.settle(payin.merchantId, payin.id, payin);
            payins.save({ ...payin, availableAt: null });
        });
    }
}
