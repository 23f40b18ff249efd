import { InvalidArgumentError } from 'commander'
import type { Instant } from '../payout/instant.ts'

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/
const DATE = /^\d{4}-\d\d-\d\d$/

/** A moment as a person types it. Throws an InvalidArgumentError for one without its time zone. */
export function momentOf(text: string): Instant {
  return parsed(text, MOMENT.test(text), 'a moment with its time zone: 2026-12-01T18:00+05:30')
}

/** The same, or a date, which is its midnight in UTC. */
export function momentOrDateOf(text: string): Instant {
  const isOne = MOMENT.test(text) || DATE.test(text)
  return parsed(text, isOne, 'a date, or a moment with its time zone: 2026-11-01T00:00+05:30')
}

function parsed(text: string, isOne: boolean, wanted: string): Instant {
  const at = isOne ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw new InvalidArgumentError(`It must be ${wanted}.`)
  return at
}
