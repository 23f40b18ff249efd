import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { paise } from "../payout/money.js";
const money = z
    .string()
    .regex(/^-?\d+$/)
    .transform((text) => paise(BigInt(text)));
const orderLine = z.object({
    mchOrderNo: z.string(),
    agentpayOrderId: z.string(),
    amount: money,
    fee: money,
    /** 1 processing, 2 success, 3 failed. */
    status: z.int(),
    timesPaid: z.int(),
    applyCalls: z.int(),
    utr: z.string().nullable(),
    payee: z.string(),
    callbacksSent: z.int(),
});
const booksAnswer = z.object({
    accounts: z.object({ paidOut: money, fees: money }),
    balancesAgree: z.boolean(),
    orders: z.object({ callbacksOutstanding: z.int() }),
    everything: z.object({ sum: money }),
});
/** The sandbox's own view of one merchant, for whoever has to judge what payoutd says. */
export class Gateway {
    #baseUrl;
    #mchId;
    constructor(baseUrl, mchId) {
        this.#baseUrl = baseUrl;
        this.#mchId = mchId;
    }
    /** Throws when the sandbox cannot be asked. */
    async books() {
        return booksAnswer.parse(await (await this.#get('books')).json());
    }
    /** Every order of the merchant, in the order of acceptance. Throws when the sandbox cannot be asked. */
    async orders() {
        const { body } = await this.#get('orders');
        const orders = [];
        if (!body)
            return orders;
        for await (const line of createInterface({ input: Readable.fromWeb(body) })) {
            orders.push(orderLine.parse(JSON.parse(line)));
        }
        return orders;
    }
    async #get(what) {
        const response = await fetch(`${this.#baseUrl}/_sandbox/${what}?mchId=${encodeURIComponent(this.#mchId)}`);
        if (!response.ok)
            throw new Error(`the gateway's ${what} cannot be read: HTTP ${response.status}`);
        return response;
    }
}
