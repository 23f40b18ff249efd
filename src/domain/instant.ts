/** Milliseconds since the Unix epoch, UTC. */
export type Instant = number
