import type { OrderStatus } from '../payout/evidence.ts'
import { scrub } from '../payout/mask.ts'
import { type Paise, paise } from '../payout/money.ts'

/** A value as it travelled; undefined where the field is missing. */
type Value = string | null | undefined

const WHOLE = /^(0|[1-9][0-9]{0,17})$/
const IDENTIFIER = /^[A-Za-z0-9._:/-]{1,64}$/
/** What careless senders write for "none". */
const NOTHING = new Set(['null', 'undefined', 'true', 'false', '0'])
const MAX_MESSAGE = 300

/** A whole number of paise, to the letter; anything else (`1e4`, `10000.0`, `-1`, nothing) is null. */
export const readAmount = (value: Value): Paise | null =>
  value && WHOLE.test(value) ? paise(BigInt(value)) : null

/** An order number or a UTR; null where there is none, or something that cannot be one. */
export const readIdentifier = (value: Value): string | null =>
  value && IDENTIFIER.test(value) && !NOTHING.has(value) ? value : null

/** Text for people, without anything that could be a bank detail, cut to 300 characters. */
export const readMessage = (value: Value, secrets: readonly string[]): string | null =>
  value ? scrub(value.slice(0, 4 * MAX_MESSAGE), secrets).slice(0, MAX_MESSAGE) : null

/** Gateway contract, "Payout order status". */
export function readStatus(value: Value): OrderStatus {
  switch (value) {
    case '0':
      return 'pending'
    case '1':
      return 'processing'
    case '2':
      return 'success'
    case '3':
      return 'failed'
    default:
      return 'unlisted'
  }
}
