/** The payments of the state file, by UTR. Every write belongs inside `store.write`. */
export class Payments {
    #insert;
    #claim;
    #byUtr;
    #untold;
    constructor(store) {
        this.#insert = store.prepare('insert into payments values (?, ?, ?, ?, ?, ?, ?)');
        this.#claim = store.prepare('update payments set claimed_by = ? where id = ?');
        this.#byUtr = store.prepare('select * from payments where merchant_id = ? and utr = ?');
        this.#untold = store.prepare('select utr from payments where made_for = ? and claimed_by is null order by id');
    }
    add({ id, merchantId, utr, amount, madeAt, madeFor, claimedBy }) {
        this.#insert.run(id, merchantId, utr, amount, madeAt, madeFor, claimedBy);
    }
    claim(payment, payinId) {
        this.#claim.run(payinId, payment.id);
    }
    byUtr(merchantId, utr) {
        const row = this.#byUtr.get(merchantId, utr);
        if (!row)
            return undefined;
        return {
            id: Number(row.id),
            merchantId: Number(row.merchant_id),
            utr: String(row.utr),
            amount: row.amount,
            madeAt: Number(row.made_at),
            madeFor: Number(row.made_for),
            claimedBy: row.claimed_by === null ? null : Number(row.claimed_by),
        };
    }
    /** UTRs of payments made on a payin's page that no order has claimed. */
    untold(payinId) {
        return this.#untold.all(payinId).map(({ utr }) => String(utr));
    }
}
