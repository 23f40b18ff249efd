import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { Dialect } from '../dialect/dialect.ts'
import { compareIgnoringCase } from './java-order.ts'

/** Parameters as they travel, by name. A null is a JSON null: present, and empty. */
export type Fields = ReadonlyMap<string, string | number | bigint | boolean | null>

export type SignRules = Dialect['sign']

/** The direction of the fields: a dialect may sign empty ones in one direction only. */
export type Traffic = keyof SignRules['emptyFields']

/**
 * The signature over `fields` (without the field `sign`): 32 hexadecimal digits for MD5, 64 for HMAC-SHA256. Values enter
 * unescaped, so the sender must first refuse those that could forge a second field (`unsafe-values.ts`). Source: gateway README,
 * "Signature".
 */
export function signature(fields: Fields, key: string, rules: SignRules, traffic: Traffic): string {
  const text = `${signedText(fields, rules, traffic)}${rules.keySuffix}=${key}`
  const hex =
    rules.algorithm === 'md5'
      ? hash('md5', text, 'hex')
      : createHmac('sha256', key).update(text).digest('hex')
  return rules.hexCase === 'upper' ? hex.toUpperCase() : hex
}

/** Whether the field `sign` is the signature over all the others. Takes the same time wherever the two differ. */
export function verify(
  fields: Fields,
  key: string,
  rules: SignRules,
  traffic: Traffic,
): 'good' | 'bad' | 'unsigned' {
  const given = fields.get('sign')
  if (given === undefined || given === null || given === '') return 'unsigned'
  const expected = Buffer.from(signature(fields, key, rules, traffic))
  const received = Buffer.from(String(given))
  return received.length === expected.length && timingSafeEqual(received, expected) ? 'good' : 'bad'
}

function signedText(fields: Fields, { sort, emptyFields }: SignRules, traffic: Traffic): string {
  const withEmpty = emptyFields[traffic]
  const names: string[] = []
  const pairs: string[] = []
  for (const [name, value] of fields) {
    if (name === 'sign' || value === null || (value === '' && !withEmpty)) continue
    names.push(name)
    pairs.push(`${name}=${value}&`)
  }
  if (sort === 'whole-ignoring-case') return pairs.sort(compareIgnoringCase).join('')
  const order = [...names.keys()].sort((i, j) => ((names[i] as string) < (names[j] as string) ? -1 : 1))
  return order.map((i) => pairs[i]).join('')
}
