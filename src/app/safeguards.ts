import { DECISIONS } from '../domain/decisions.ts'
import { parsePayoutCallback } from '../gateway/callbacks/callback.ts'
import { PresenceCheck } from '../gateway/presence-check.ts'
import { createPublisher } from '../platform/kafka/producer.ts'
import { connectDatabase } from '../platform/postgres/postgres.ts'
import { type Clock, isBefore } from '../platform/running/clock.ts'
import { claim } from '../stages/dispatch/claim.ts'

/**
 * What stands between payoutd and paying twice, losing a payout or telling a lie, as parts that `startPayoutd`
 * and `payoutd recover` put together. Nothing in the product leaves one out. The prover does, each in turn, to show that its
 * matrix would tell (docs/proof.md).
 */
export const SAFEGUARDS = {
  /** Transactions are whole: state, history, outbox and offsets together or not at all. */
  connectDatabase,
  /** The intent to send is committed before a byte leaves, and only what the balance covers is taken. */
  claim,
  /** A process whose lease may be over, by either of its clocks, sends nothing. */
  maySend: isBefore,
  /** What is not known is called unknown, and nothing moves on evidence that does not fit. */
  decisions: DECISIONS,
  /** "Not found" counts only where these settings find an order known to exist, at that moment. */
  openPresenceCheck: (clock: Clock): Pick<PresenceCheck, 'found' | 'holds'> => new PresenceCheck(clock),
  /** What the gateway did not sign is not heard. */
  readCallback: parsePayoutCallback,
  /** A message is forgotten only when every in-sync replica has it. */
  createPublisher,
}

export type Safeguards = typeof SAFEGUARDS
