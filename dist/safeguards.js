import { claim } from "./dispatch/claim.js";
import { parsePayoutCallback } from "./gateway/callback.js";
import { PositiveControl } from "./gateway/positive-control.js";
import { JUDGEMENT } from "./payout/judgement.js";
import { createPublisher } from "./platform/kafka/producer.js";
import { connectDatabase } from "./platform/postgres.js";
/**
 * What stands between payoutd and paying twice, losing a payout or telling a lie, as parts that `startPayoutd`
 * puts together. Nothing in the product leaves one out. The prover does, each in turn, to show that its
 * matrix would tell (docs/proof.md).
 */
export const SAFEGUARDS = {
    /** Transactions are whole: state, history, outbox and offsets together or not at all. */
    connectDatabase,
    /** The intent to send is committed before a byte leaves, and only what the balance covers is taken. */
    claim,
    /** A process whose lease may be over sends nothing (both in monotonic ms). */
    maySend: (now, sendBefore) => now < sendBefore,
    /** What is not known is called unknown, and nothing moves on evidence that does not fit. */
    judge: JUDGEMENT,
    /** "Not found" counts only where these settings find an order known to exist, at that moment. */
    openControl: (clock) => new PositiveControl(clock),
    /** What the gateway did not sign is not heard. */
    readCallback: parsePayoutCallback,
    /** A message is forgotten only when every in-sync replica has it. */
    createPublisher,
};
