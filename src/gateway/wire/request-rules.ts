import { z } from 'zod'
import { ACCOUNT_NO, IFSC, VPA } from '../../domain/commands/validate.ts'
import type { RequestFault } from '../../domain/evidence.ts'

/** The contract's rules for single fields ("Limits"; gateway README, "Formats"), as parts of a request's schema. */
const rule = (word: string, message: string, holds: (text: string) => boolean) =>
  z.string().refine(holds, { message, params: { rule: word } })

const matching = (word: string, message: string, pattern: RegExp) =>
  rule(word, message, (text) => pattern.test(text))

export const given = matching('given', 'must not be empty', /./s)
/** An order number of either side, or a UTR: all are String(30). */
export const number30 = matching('length', 'must be 1 to 30 characters', /^.{1,30}$/su)
export const phoneNumber = matching('phone', 'must be 10 digits, the first 6 to 9', /^[6-9][0-9]{9}$/)
export const payerEmail = matching(
  'email',
  'must have at least 2 characters, an @ and a dot',
  /^(?=.*\.)[^@]{2,}@/s,
)
export const accountName = rule('length', 'must be 2 to 48 characters', (name) => {
  const length = [...name.trim()].length
  return length >= 2 && length <= 48
})
export const webAddress = rule('url', 'must be an http or https address', (text) =>
  /^https?:$/.test(URL.parse(text)?.protocol ?? ''),
)
/**
 * A callback's signature covers the whole query string, so our own parameters in it would break every signature. What a gateway
 * appends after a `#` never reaches us.
 */
export const notifyUrl = webAddress.refine((text) => !/[?#]/.test(text), {
  message: 'must have neither a query string nor a fragment: the gateway writes the result there',
  params: { rule: 'no-query' },
})
export const accountNo = matching(
  'account-no',
  'must be 5 to 35 letters and digits (a VPA payout needs it too)',
  ACCOUNT_NO,
)
export const ifsc = matching(
  'ifsc',
  'must be 4 capital letters, a zero, then 6 capital letters or digits',
  IFSC,
)
export const vpa = matching(
  'vpa',
  'must look like name@bank: 2 or more letters, digits, dots, dashes or underscores, an @, then letters and digits',
  VPA,
)
export const amount = z
  .bigint()
  .refine((paise) => paise > 0n, { message: 'must be more than zero', params: { rule: 'positive' } })
  .refine((paise) => paise % 100n === 0n, {
    message: 'must be a multiple of 100 paise',
    params: { rule: 'whole-rupees' },
  })

/**
 * For a request that names its order by one of two fields. Checked even if other fields are wrong, so that all faults come at
 * once.
 */
export const oneOf = <Shape extends z.ZodRawShape>(first: string, second: string, shape: Shape) =>
  z.object(shape).refine((given) => isGiven(given, first) !== isGiven(given, second), {
    path: [first],
    message: `must be given, or ${second}, and not both`,
    params: { rule: 'one-of-two' },
    when: ({ value }) => typeof value === 'object' && value !== null,
  })

const isGiven = (fields: Readonly<Record<string, unknown>>, name: string): boolean =>
  (fields[name] ?? null) !== null

/** Every rule that a request breaks, in the order of its fields; no fault repeats a value. */
export function faultsIn(schema: z.ZodType, request: unknown): RequestFault[] {
  const issues = schema.safeParse(request).error?.issues ?? []
  return issues.map((issue) => ({
    field: issue.path.join('.'),
    rule: issue.code === 'custom' ? String(issue.params?.rule) : 'type',
    message: issue.code === 'invalid_type' ? `must be ${TYPES[issue.expected]}` : issue.message,
  }))
}

/** The types of the requests' fields, in words. */
const TYPES: { readonly [expected: string]: string } = {
  string: 'text',
  bigint: 'a bigint of paise',
  boolean: 'true or false',
  object: 'an object',
}
