import { z } from 'zod'
import type { RequestFault } from '../payout/evidence.ts'

/** The contract's rules for single fields ("Limits"), as parts of a request's schema. */
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
export const amount = z
  .bigint()
  .refine((paise) => paise > 0n, { message: 'must be more than zero', params: { rule: 'positive' } })
  .refine((paise) => paise % 100n === 0n, {
    message: 'must be a multiple of 100 paise',
    params: { rule: 'whole-rupees' },
  })

/** For a query, which names its order by one of two numbers, so that the answer must name the same. */
export const oneNumber = (first: string, second: string) =>
  z
    .object({ [first]: number30.optional(), [second]: number30.optional() })
    .refine((by) => (by[first] === undefined) !== (by[second] === undefined), {
      path: [first],
      message: `give either this or ${second}`,
      params: { rule: 'one-of-two' },
    })

/** Every rule that a request breaks, in the order of its fields; none repeats a value. */
export function faultsIn(schema: z.ZodType, request: unknown): RequestFault[] {
  const issues = schema.safeParse(request).error?.issues ?? []
  return issues.map((issue) => ({
    field: issue.path.join('.'),
    rule: issue.code === 'custom' ? String(issue.params?.rule) : 'type',
    message: issue.message,
  }))
}
