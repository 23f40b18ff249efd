import { recordAct } from "../ledger/acts.js";
import { putBack } from "./sql/refused-messages.js";
/**
 * Has the relay publish messages once more that Kafka refused, with who wanted it. Returns the positions of those that
 * were there.
 */
export function retryMessages(db, { positions, by, reason }) {
    return db.transaction('retry messages', async (tx) => {
        const again = await tx.run(putBack, { positions: [...positions] });
        if (again.length > 0) {
            const subjects = again.map(({ position, eventId }) => `${position} ${eventId}`);
            await recordAct(tx, {
                ...{ by, reason, command: 'outbox retry', merchantId: null, subjects },
                ...{ before: null, after: null },
            });
        }
        return again.map(({ position }) => position);
    });
}
