import { headerText, type RecordHeaders } from '../platform/kafka/records.ts'

/** Version 00 of W3C Trace Context, which forbids ids of zeros only. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The upstream's `traceparent` as it came with a record; null where none came, or none that W3C allows. */
export function traceparentOf(headers: RecordHeaders): string | null {
  const given = headerText(headers, 'traceparent')
  return given !== undefined && TRACEPARENT.test(given) ? given : null
}
