import type { Instant } from '../../domain/instant.ts'

/** Writes an instant as the contract's reqTime, yyyyMMddHHmmss, in one IANA time zone. */
export function reqTimeIn(timeZone: string): (now: Instant) => string {
  // The Swedish format has the contract's order: 2026-11-21 12:00:00.
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'medium',
  })
  return (now) => format.format(now).replace(/\D/g, '')
}
