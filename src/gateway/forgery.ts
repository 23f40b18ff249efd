import type { Fault } from '../payout/fault.ts'

/** An address may need these characters, and is ours. The JSON in `extra` needs none of them. */
const EXEMPT = new Set(['notifyUrl', 'returnUrl'])
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const FORGES_A_FIELD = /[&=\u0000-\u001f\u007f]/

/**
 * The first outgoing value that must not be signed, or null. Nothing is escaped before signing, so the
 * signature of accountName "A&accountNo=1" is also that of two fields. A lone surrogate has no UTF-8, so
 * the gateway would see and sign another text than we did. The fault does not repeat the value.
 */
export function findForgery(values: Iterable<readonly [string, string | bigint]>): Fault | null {
  for (const [field, value] of values) {
    if (typeof value !== 'string') continue
    if (!value.isWellFormed()) {
      return fault(field, 'unicode', 'must be valid Unicode text', 'an unpaired surrogate')
    }
    const found = EXEMPT.has(field) ? undefined : FORGES_A_FIELD.exec(value)?.[0]
    if (found !== undefined) return fault(field, 'signature-safe', advice(found), nameOf(found))
  }
  return null
}

const fault = (field: string, rule: string, message: string, found: string): Fault => ({
  field,
  rule,
  message,
  found,
})

function advice(found: string): string {
  const instead =
    found === '&' ? 'write "and" ("Rao & Sons" becomes "Rao and Sons")' : 'leave it out, or write a space'
  return `must not hold ${nameOf(found)}, which could forge a signed field: ${instead}`
}

const nameOf = (found: string): string =>
  found === '&' || found === '='
    ? `"${found}"`
    : `control character U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
