import { DECISIONS } from '../domain/decisions.ts'
import { parsePayoutCallback } from '../gateway/callbacks/callback.ts'
import { PresenceCheck } from '../gateway/presence-check.ts'
import { createPublisher } from '../platform/kafka/producer.ts'
import { connectDatabase } from '../platform/postgres/postgres.ts'
import { type Clock, isBefore } from '../platform/running/clock.ts'
import { claim } from '../stages/dispatch/claim.ts'

/**
 * The safeguards that keep payoutd from paying twice, losing a payout or reporting something false, as parts that
 * `startPayoutd` and `payoutd recover` put together. The product always uses all of them. The prover leaves out one
 * at a time, to show that its matrix would notice (docs/proof.md).
 */
export const SAFEGUARDS = {
  /** Transactions are whole: state, history, outbox and offsets commit together or not at all. */
  connectDatabase,
  /** payoutd commits the intent to send before a byte leaves, and claims only what the balance covers. */
  claim,
  /** A process whose lease may be over, by either of its clocks, sends nothing. */
  maySend: isBefore,
  /** payoutd calls an unknown outcome unknown, and changes no state on evidence that does not fit. */
  decisions: DECISIONS,
  /** "Not found" counts only if the same settings can find orders known to exist, at that moment. */
  openPresenceCheck: (clock: Clock): Pick<PresenceCheck, keyof PresenceCheck> => new PresenceCheck(clock),
  /** payoutd ignores a callback that the gateway did not sign. */
  readCallback: parsePayoutCallback,
  /** payoutd deletes a message only when every in-sync replica has it. */
  createPublisher,
}

export type Safeguards = typeof SAFEGUARDS
