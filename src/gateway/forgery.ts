import type { Fault } from '../payout/fault.ts'
import { forgeryIn } from '../payout/forgery.ts'

/** An address may need the characters that are refused, and is ours. The JSON in `extra` needs none of them. */
const EXEMPT = new Set(['notifyUrl', 'returnUrl'])

/** The first outgoing value that must not be signed, or null. The fault does not repeat the value. */
export function findForgery(values: Iterable<readonly [string, string | bigint]>): Fault | null {
  for (const [field, value] of values) {
    const forgery = typeof value === 'string' && !EXEMPT.has(field) ? forgeryIn(value) : null
    if (forgery) return { field, ...forgery }
  }
  return null
}
