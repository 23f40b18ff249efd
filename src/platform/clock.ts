/** Milliseconds since the Unix epoch, UTC. */
export type Instant = number

export interface Clock {
  /** The wall clock. What several processes must agree on comes from the database's clock instead. */
  now(): Instant
  /** Milliseconds that never go back, for deadlines inside one process. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
