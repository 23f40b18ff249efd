import type { Fault } from './fault.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const FORGES_A_FIELD = /[&=\u0000-\u001f\u007f]/

/**
 * Why a text must not be signed, or null. Signing escapes nothing, so the signature of accountName "A&accountNo=1" is also
 * that of two fields. A lone surrogate has no UTF-8, so the gateway would see and sign another text than payoutd. `found`
 * names the fault, and repeats nothing else of the text.
 */
export function unsafeTextIn(text: string): Omit<Fault, 'field'> | null {
  if (!text.isWellFormed()) {
    return { rule: 'unicode', message: 'must be valid Unicode text', found: 'an unpaired surrogate' }
  }
  const [character] = FORGES_A_FIELD.exec(text) ?? []
  if (character === undefined) return null
  const found = nameOf(character)
  const instead =
    character === '&' ? 'write "and" ("Rao & Sons" becomes "Rao and Sons")' : 'leave it out, or write a space'
  return unsafe(found, instead)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const NOT_IN_AN_ADDRESS = /[&#\u0000-\u001f\u007f]/

/**
 * The same for an address, which may need a "=": unless a signed value beside it contains a "&", nobody can read another
 * field into it. What follows a "#" never reaches the receiver.
 */
export function unsafeTextInAddress(text: string): Omit<Fault, 'field'> | null {
  if (!text.isWellFormed()) return unsafeTextIn(text)
  const [character] = NOT_IN_AN_ADDRESS.exec(text) ?? []
  if (character === undefined) return null
  return unsafe(nameOf(character), 'give it at most one parameter, or put the rest into the path')
}

const unsafe = (found: string, instead: string): Omit<Fault, 'field'> => ({
  rule: 'signature-safe',
  message: `must not hold ${found}, which could forge a signed field: ${instead}`,
  found,
})

const nameOf = (character: string): string =>
  character === '&' || character === '=' || character === '#'
    ? `"${character}"`
    : `control character U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
