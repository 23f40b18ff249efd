import { NEVER_SENT } from "../payout/never-sent.js";
import { storeDecisions } from "./ledger.js";
import { raiseFence } from "./sql/fence.js";
/** Who raises a fence that no person asked for. */
export const BY_PAYOUTD = 'payoutd';
/** Not an error: rolls back, so that merchants are locked before their payouts. */
class MustFence extends Error {
    losses;
    constructor(losses) {
        super();
        this.losses = losses;
    }
}
/**
 * Runs `work` in a transaction, in which `store` stores what evidence came to. Where that shows that the ledger has lost
 * what was sent, the merchant is fenced in the same transaction: nothing more of it is sent until `payoutd recover` has
 * asked the gateway about all that is open. Then `work` runs twice: see Database.transaction.
 */
export async function storeEvidence({ ledger, log }, name, work) {
    const fenced = new Map();
    for (;;) {
        try {
            const result = await ledger.db.transaction(name, async (tx) => {
                for (const merchantId of [...fenced.keys()].sort()) {
                    const reason = fenced.get(merchantId);
                    await tx.run(raiseFence, { merchantId, by: BY_PAYOUTD, reason, feeEstimate: 0n });
                }
                return work(tx, async (decisions) => {
                    const losses = lossesIn(decisions).filter(([merchantId]) => !fenced.has(merchantId));
                    if (losses.length > 0)
                        throw new MustFence(new Map(losses));
                    await storeDecisions(tx, ledger, decisions);
                });
            });
            for (const [merchantId, reason] of fenced)
                log.error({ merchantId, reason }, FENCED);
            return result;
        }
        catch (error) {
            if (!(error instanceof MustFence))
                throw error;
            for (const [merchantId, reason] of error.losses)
                fenced.set(merchantId, reason);
        }
    }
}
const FENCED = 'the merchant is fenced, and nothing of it is sent: the ledger lacks what was sent. ' +
    'Run payoutd recover, which asks the gateway about every open payout';
const lossesIn = (decisions) => decisions.flatMap((decision) => 'anomaly' in decision && decision.anomaly.kind === NEVER_SENT
    ? [[decision.anomaly.merchantId, `the ledger was set back: ${decision.anomaly.detail}`]]
    : []);
