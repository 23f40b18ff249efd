import { cutText } from '../platform/text.ts'

/** What is shown where nothing stands: dots would say that something was hidden. */
export const EMPTY = '(empty)'

/** `50100123456789` → `••••6789`. Short values show nothing. */
export function maskAccount(accountNo: string): string {
  if (accountNo === '') return EMPTY
  return accountNo.length < 8 ? '••••' : `••••${accountNo.slice(-4).replace(/^[\udc00-\udfff]/, '')}`
}

/** `asha.rao@okaxis` → `as••••@okaxis`. What looks like a number of an account is hidden after the @ too. */
export function maskVpa(vpa: string): string {
  const at = vpa.indexOf('@')
  if (at < 0) return maskAccount(vpa)
  return `${cutText(vpa, Math.min(2, Math.max(0, at - 2)))}••••${hideNumbers(vpa.slice(at))}`
}

const ADDRESS = /[A-Za-z0-9._-]{2,256}@[A-Za-z0-9.-]{2,}/g
const LONG_TOKEN = /[A-Za-z0-9]{5,}/g

/**
 * Free text from outside (an error message, a body that could not be parsed), made safe to store and show:
 * anything that could be an account number (five or more letters and digits with four digits among them),
 * a VPA or an e-mail is masked. `known` are values that must not appear at all, whatever they look like.
 */
export function scrub(text: string, known: readonly string[] = []): string {
  let safe = text
  for (const value of known) if (value.length >= 4) safe = safe.replaceAll(value, '••••')
  return hideNumbers(safe.replace(ADDRESS, maskVpa))
}

const hideNumbers = (text: string): string =>
  text.replace(LONG_TOKEN, (token) => ((token.match(/\d/g)?.length ?? 0) >= 4 ? maskAccount(token) : token))
