import type { OrderStatus } from '../../domain/evidence.ts'
import type { Instant } from '../../domain/instant.ts'
import { scrub } from '../../domain/mask.ts'
import { type Paise, paise } from '../../domain/money.ts'
import { cutText } from '../../text/text.ts'

/** A value as it travelled; undefined if the field is missing. */
type Value = string | null | undefined

const WHOLE = /^(0|[1-9][0-9]{0,17})$/
const IDENTIFIER = /^[A-Za-z0-9._:/-]{1,64}$/
const NOTHING = new Set(['null', 'undefined', 'true', 'false', 'none', 'nil', 'n/a', 'na'])
const MAX_MESSAGE = 300
const EARLIEST = Date.UTC(2000, 0)
const LATEST = Date.UTC(2100, 0)

/** A whole number of paise, exactly as written; anything else (`1e4`, `10000.0`, `-1`, nothing) is null. */
export const readAmount = (value: Value): Paise | null =>
  value && WHOLE.test(value) ? paise(BigInt(value)) : null

/** The same for an amount that may be below zero, as in a balance. */
export const readSignedAmount = (value: Value): Paise | null =>
  value && WHOLE.test(value.replace(/^-(?=[1-9])/, '')) ? paise(BigInt(value)) : null

/** A small whole number that is not an amount; null for anything else. */
export const readInteger = (value: Value): number | null =>
  value && /^(0|-?[1-9][0-9]{0,8})$/.test(value) ? Number(value) : null

/** Milliseconds since 1970; null for anything outside this century, such as seconds or a written date. */
export function readInstant(value: Value): Instant | null {
  if (!value || !/^[0-9]{12,13}$/.test(value)) return null
  const instant = Number(value)
  return instant >= EARLIEST && instant < LATEST ? instant : null
}

/** The value in place of a listed status, for people: masked, and cut to 64 characters. */
export const readUnlisted = (value: Value): string =>
  value ? `status ${cutText(scrub(cutText(value, 64)), 64)}` : 'no status'

/** What careless senders write for "none": one of these words, or only zeros and signs. */
const isNothing = (value: string): boolean => NOTHING.has(value.toLowerCase()) || !/[1-9a-z]/i.test(value)

/** An order number or a UTR; null if there is none, or the value cannot be one. */
export const readIdentifier = (value: Value): string | null =>
  value && IDENTIFIER.test(value) && !isNothing(value) ? value : null

/** The fields whose value is unreadable, each with that value: masked, and cut to 64 characters. Empty if there are none. */
export function unreadableIn(
  fields: ReadonlyMap<string, string | null>,
  readers: Readonly<Record<string, (value: Value) => unknown>>,
): { unreadable?: readonly string[] } {
  const unreadable = Object.entries(readers).flatMap(([name, read]) => {
    const value = fields.get(name)
    if (!value?.trim() || isNothing(value) || read(value) !== null) return []
    return `${name} "${cutText(scrub(cutText(value, 64)), 64)}"`
  })
  return unreadable.length > 0 ? { unreadable } : {}
}

/** Text for people, without possible bank details, cut to 300 characters. */
export const readMessage = (value: Value, secrets: readonly string[]): string | null =>
  value ? cutText(scrub(cutText(value, 4 * MAX_MESSAGE), secrets), MAX_MESSAGE) : null

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
