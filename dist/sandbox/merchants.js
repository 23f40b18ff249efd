import { dialectJson } from "./dialect.js";
/** The merchants of the state file. */
export class Merchants {
    #parts;
    #byMchId = new Map();
    #byId = new Map();
    constructor(parts) {
        this.#parts = parts;
        for (const row of parts.store.prepare('select * from merchants').all()) {
            const id = Number(row.id);
            const keys = [String(row.key), ...JSON.parse(String(row.older_keys))];
            const dialect = row.dialect === null ? parts.dialect : JSON.parse(String(row.dialect));
            this.#keep({ id, mchId: String(row.mch_id), keys, dialect });
            parts.books.open(id);
        }
    }
    /**
     * A merchant that the file does not know is added with its first money; one that it knows keeps its
     * balance and takes the keys and settings given. Says whether it is new.
     */
    put(wanted) {
        const { mchId, key, olderKeys = [], balance } = wanted;
        const { store, books, openingBalance, dialect: ours } = this.#parts;
        const known = this.#byMchId.get(mchId);
        const own = wanted.dialect && dialectJson.parse(wanted.dialect);
        const row = [key, JSON.stringify(olderKeys), own ? JSON.stringify(own) : null];
        const settings = { keys: [key, ...olderKeys], dialect: own ?? ours };
        store.write(() => {
            if (known) {
                const update = 'update merchants set key = ?, older_keys = ?, dialect = ? where id = ?';
                store.prepare(update).run(...row, known.id);
                this.#keep({ ...known, ...settings });
                return;
            }
            const insert = 'insert into merchants (key, older_keys, dialect, mch_id) values (?, ?, ?, ?)';
            const id = Number(store.prepare(insert).run(...row, mchId).lastInsertRowid);
            this.#keep({ id, mchId, ...settings });
            books.open(id);
            const first = balance ?? openingBalance;
            if (first > 0n)
                books.fund(id, first);
        });
        return known ? 'known' : 'new';
    }
    named(mchId) {
        return this.#byMchId.get(mchId);
    }
    /** The merchant of an order. Orders of unknown merchants do not exist. */
    of(order) {
        const merchant = this.#byId.get(order.merchantId);
        if (!merchant)
            throw new Error(`an order belongs to merchant ${order.merchantId}, which does not exist`);
        return merchant;
    }
    all() {
        return [...this.#byMchId.values()];
    }
    #keep(merchant) {
        this.#byMchId.set(merchant.mchId, merchant);
        this.#byId.set(merchant.id, merchant);
    }
}
