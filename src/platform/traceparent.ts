const LENGTH = 55
/** Version 00 of W3C Trace Context, which forbids ids of zeros only. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The `traceparent` of a header; null if it is missing or W3C does not allow it. */
export const readTraceparent = (given: unknown): string | null =>
  typeof given === 'string' && given.length === LENGTH && TRACEPARENT.test(given) ? given : null
