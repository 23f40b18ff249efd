import { openLedger } from "../main.js";
import { systemIds } from "../platform/ids.js";
import { Lifecycle } from "../platform/lifecycle.js";
import { createLogger } from "../platform/log.js";
/** The ledger for one command that changes it, closed when `work` has ended. */
export async function withLedger(config, work) {
    const lifecycle = new Lifecycle(createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 }));
    try {
        const { ledger, codec } = await openLedger(config, lifecycle, systemIds);
        return await work(ledger, codec);
    }
    finally {
        await lifecycle.stop();
    }
}
