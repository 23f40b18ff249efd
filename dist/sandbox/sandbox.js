import { systemClock } from "../platform/clock.js";
import { listen } from "../platform/http.js";
import { Lifecycle } from "../platform/lifecycle.js";
import { silentLogger } from "../platform/log.js";
import { addAdminRoutes } from "./admin.js";
import { Books } from "./books.js";
import { CallbackSender } from "./callbacks.js";
import { addCheckoutRoutes, checkoutPath } from "./checkout.js";
import { Deliveries } from "./deliveries.js";
import { dialectJson } from "./dialect.js";
import { DrivenClock } from "./driven-clock.js";
import { Exchanges } from "./exchanges.js";
import { Faults } from "./faults.js";
import { FaultySender } from "./faulty-sender.js";
import { Gateway } from "./gateway.js";
import { addJudgeRoutes } from "./judge.js";
import { Merchants } from "./merchants.js";
import { createOperations } from "./operations.js";
import { Orders } from "./orders.js";
import { addOverview } from "./overview.js";
import { PayinNotices } from "./payin-notices.js";
import { PayinRecords } from "./payin-records.js";
import { Payins } from "./payins.js";
import { Payments } from "./payments.js";
import { Payouts } from "./payouts.js";
import { Sequence } from "./sequence.js";
import { createSandboxServer } from "./server.js";
import { Store } from "./store.js";
import { Totals } from "./totals.js";
/** What holds where nothing else is asked for. */
export const DEFAULTS = {
    host: '127.0.0.1',
    port: 0,
    balance: 10000000000n,
    settleMs: 300,
    latencyMs: 0,
    callbackRetries: [60, 120, 180, 240, 300],
    feeFlat: 500n,
    feeBps: 0n,
    payinExpiryMs: 900_000,
    payinSettleMs: 5_000,
    payinFeeFlat: 0n,
    payinFeeBps: 100n,
};
/** Writes of this many milliseconds share one commit. */
const GROUP_MS = 2;
/** Starts a gateway of its own and resolves once it listens. What a former run left open goes on. */
export async function startSandbox(options) {
    const settings = { ...DEFAULTS, ...options };
    const { host, port, latencyMs, callbackRetries } = settings;
    const { log = silentLogger } = options;
    const dialect = dialectJson.parse(options.dialect ?? {});
    const clock = new DrivenClock(options.clock ?? systemClock);
    const lifecycle = new Lifecycle(log);
    const { signal } = lifecycle;
    let publicUrl = options.publicUrl;
    try {
        const store = new Store(options.state, GROUP_MS);
        lifecycle.own('store', async () => store.close());
        const books = new Books(store);
        const merchants = new Merchants({ store, books, openingBalance: settings.balance, dialect });
        for (const merchant of options.merchants)
            merchants.put(merchant);
        store.flush();
        const sequence = new Sequence(store);
        const orders = new Orders(store);
        const records = new PayinRecords(store);
        const payments = new Payments(store);
        const deliveries = new Deliveries(store);
        const exchanges = new Exchanges();
        const faults = new Faults();
        const callbacks = new CallbackSender(clock, exchanges);
        lifecycle.own('callbacks', () => callbacks.stop());
        const sender = new FaultySender(callbacks, faults, clock);
        const kept = { store, sequence, books, merchants, deliveries, sender, clock };
        const payouts = new Payouts({
            ...kept,
            orders,
            terms: {
                fees: { flat: settings.feeFlat, bps: settings.feeBps },
                settleMs: settings.settleMs,
                callbackRetries,
            },
        });
        lifecycle.own('payouts', async () => payouts.stop());
        const notices = new PayinNotices({ ...kept, payins: records, retries: callbackRetries });
        lifecycle.own('payin callbacks', async () => notices.stop());
        const payins = new Payins({
            ...kept,
            payins: records,
            payments,
            notices,
            terms: {
                fees: { flat: settings.payinFeeFlat, bps: settings.payinFeeBps },
                expiryMs: settings.payinExpiryMs,
                settleMs: settings.payinSettleMs,
            },
        });
        lifecycle.own('payins', async () => payins.stop());
        const payUrl = (payOrderId) => `${publicUrl}${checkoutPath(payOrderId)}`;
        const operations = createOperations({ payouts, payins, notices, books, payUrl });
        const gateway = new Gateway({
            store,
            merchants,
            dialect,
            operations,
            payouts,
            exchanges,
            faults,
            clock,
            log,
            latencyMs,
            signal,
        });
        const server = createSandboxServer(gateway, log);
        addCheckoutRoutes(server, { store, merchants, payins, records, payments, clock });
        addJudgeRoutes(server, {
            store,
            orders,
            records,
            payments,
            deliveries,
            merchants,
            totals: new Totals(store),
        });
        addOverview(server, { store, merchants, books, orders, records, deliveries, exchanges, clock });
        addAdminRoutes(server, { store, merchants, faults, clock });
        lifecycle.own('server', () => server.close());
        const url = await listen(server, { host, port });
        publicUrl ??= url;
        return { url, merchants: merchants.all().map(({ mchId }) => mchId), stop: () => lifecycle.stop() };
    }
    catch (error) {
        await lifecycle.stop();
        throw error;
    }
}
