import { InvalidArgumentError } from 'commander'
import { isOfThisCentury } from '../../domain/commands/validate.ts'
import type { Instant } from '../../domain/instant.ts'

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/
const DATE = /^\d{4}-\d\d-\d\d$/

/** A moment as a person types it. Throws an InvalidArgumentError if it lacks a time zone, or its day does not exist. */
export function momentOf(text: string): Instant {
  return parsed(text, MOMENT.test(text), 'a moment with its time zone: 2026-12-01T18:00+05:30')
}

/** The same, or a date, which means its midnight in India, where pay days begin. */
export function momentOrDateOf(text: string): Instant {
  const moment = DATE.test(text) ? `${text}T00:00+05:30` : text
  return parsed(moment, MOMENT.test(moment), 'a date, or a moment with its time zone: 2026-11-01T00:00Z')
}

function parsed(text: string, isOne: boolean, wanted: string): Instant {
  if (isOne && !isDay(text.slice(0, 10))) throw new InvalidArgumentError('There is no such day.')
  const at = isOne ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw new InvalidArgumentError(`It must be ${wanted}.`)
  if (!isOfThisCentury(at)) throw new InvalidArgumentError('It must be in this century.')
  return at
}

/** Date.parse reads 30 February as 2 March. */
function isDay(date: string): boolean {
  const midnight = Date.parse(date)
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date)
}
