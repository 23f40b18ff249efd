import type { Config } from '../config/config.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'

/** Whose `what` a command is about: the one given, or the only one there is. Throws an ExpectedFailure. */
export function merchantOf(
  { merchants }: Config,
  given: string | undefined,
  what: 'payout' | 'payin' | 'anomaly',
): string {
  if (given !== undefined) return given
  const [only, ...others] = merchants.keys()
  if (only === undefined || others.length > 0) {
    throw new ExpectedFailure(`whose ${what}? give --merchant, one of ${[...merchants.keys()].join(', ')}`)
  }
  return only
}
