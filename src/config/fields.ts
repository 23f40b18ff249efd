import { z } from 'zod'

/** The kinds of settings, in variables and in files. Each message says what is wanted, for people. */

/** A whole number in digits, or as a JSON number. */
export function whole(min: number, max = Number.MAX_SAFE_INTEGER) {
  const wanted =
    max === Number.MAX_SAFE_INTEGER
      ? `must be a whole number of at least ${min}`
      : `must be a whole number from ${min} to ${max}`
  return z.coerce
    .string()
    .regex(/^\d{1,15}$/, wanted)
    .transform(Number)
    .refine((number) => min <= number && number <= max, wanted)
}

/** The address of a server, exactly as given. A password that is not percent-encoded would end up behind the host. */
export const address = (protocol: RegExp, example: string) =>
  z
    .url({ protocol, error: `must be an address, for example ${example}` })
    .refine((text) => !/[@#]/.test(behindHost(text)), {
      error: 'has an @ or # behind its host: percent-encode the password',
    })

function behindHost(text: string): string {
  const url = URL.parse(text)
  if (!url) return ''
  // A parameter's value may have an @. Its name has none, unless a password has a ?.
  const [firstName = ''] = url.search.split(/[=&]/)
  return url.pathname + firstName + url.hash
}

/** Whether an address has a user or a password in it. */
export function hasUser(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.username + url.password !== ''
}

export const oneOf = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, `must be one of ${words.join(', ')}`)

/** True or false in words, or as a JSON boolean. */
export const yesOrNo = z.coerce.string().pipe(z.stringbool({ error: 'must be true or false' }))
