/** Milliseconds since the Unix epoch, UTC. */
export type Instant = number

export interface Clock {
  /** The wall clock. Times that several processes must agree on come from the database's clock instead. */
  now(): Instant
  /** Milliseconds that never go back, for deadlines inside one process. They stand still while the machine is suspended. */
  monotonic(): number
}

/** A clock's two times at one moment. */
export type Moment = { wall: Instant; monotonic: number }

export const momentOf = (clock: Clock): Moment => ({ wall: clock.now(), monotonic: clock.monotonic() })

export const momentAfter = ({ wall, monotonic }: Moment, ms: number): Moment => ({
  wall: wall + ms,
  monotonic: monotonic + ms,
})

/** Compares both of a clock's times: one stands still in a suspended machine, the other may be set back. */
export const isBefore = (moment: Moment, end: Moment): boolean =>
  moment.wall < end.wall && moment.monotonic < end.monotonic

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
