import { z } from 'zod'
import type { RequestFault } from '../domain/evidence.ts'
import { paise } from '../domain/money.ts'
import { unsafeTextIn, unsafeTextInAddress } from '../domain/unsafe-text.ts'
import type { PayinOrder } from '../gateway/calls/payin-create.ts'
import {
  accountName,
  amount,
  number30,
  payerEmail,
  phoneNumber,
  webAddress,
} from '../gateway/wire/request-rules.ts'

/** The fields that a caller sets; payoutd adds the rest of the order. */
export type PayinRequest = Omit<PayinOrder, 'mchOrderNo' | 'notifyUrl'>

export type ReadRequest<T> = { kind: 'good'; value: T } | { kind: 'wrong'; faults: RequestFault[] }

const MAX_TEXT = 256

/** Refuses characters that could forge a signed field, and says what to write instead. */
const signable = (field: z.ZodString, find = unsafeTextIn) =>
  field.superRefine((text, context) => {
    const forgery = find(text)
    if (forgery)
      context.addIssue({ code: 'custom', message: forgery.message, params: { rule: forgery.rule } })
  })

const short = (field: z.ZodString) =>
  field.refine((text) => text.length <= MAX_TEXT, {
    message: `must be at most ${MAX_TEXT} characters`,
    params: { rule: 'length' },
  })

/** As it travels: the caller must have percent-encoded all non-ASCII characters. */
const encoded = (field: z.ZodString) =>
  field.refine((text) => /^[\x21-\x7e]*$/.test(text), {
    message: 'must be percent-encoded: visible ASCII characters only',
    params: { rule: 'url' },
  })

const WHOLE_PAISE = 'must be a whole number of paise, as a number of at most 15 digits or as text'
const isWhole = (value: bigint | string): boolean =>
  typeof value === 'bigint' || /^(0|[1-9][0-9]{0,17})$/.test(value)
const wholePaise = z
  .union([z.bigint(), z.string()], { error: WHOLE_PAISE })
  .refine(isWhole, { message: WHOLE_PAISE, params: { rule: 'whole-paise' }, abort: true })
  .transform((value) => BigInt(value))

const payinRequest = z.strictObject({
  merchantId: z.string().optional(),
  amount: wholePaise.pipe(amount),
  accountName: signable(accountName).nullish(),
  phoneNumber: phoneNumber.nullish(),
  payerEmail: signable(short(payerEmail)).nullish(),
  remark: signable(short(z.string())).nullish(),
  returnUrl: signable(encoded(short(webAddress)), unsafeTextInAddress).nullish(),
})

const recovery = z.strictObject({ merchantId: z.string().optional(), utr: signable(number30) })

/** A body of `POST /v1/payins` as `readJsonBodies` reads it, with the payin's merchant if the body names it. All faults at once; none repeats a value. */
export function readPayinRequest(
  body: unknown,
): ReadRequest<{ merchantId: string | undefined; request: PayinRequest }> {
  const read = readAs(payinRequest, body)
  if (read.kind === 'wrong') return read
  const { merchantId, amount, accountName, phoneNumber, payerEmail, remark, returnUrl } = read.value
  return {
    kind: 'good',
    value: {
      merchantId,
      request: {
        amount: paise(amount),
        currency: 'INR',
        accountName: accountName ?? null,
        phoneNumber: phoneNumber ?? null,
        payerEmail: payerEmail ?? null,
        remark: remark ?? null,
        returnUrl: returnUrl ?? null,
      },
    },
  }
}

/** A body of `POST /v1/payins/{id}/recover`. */
export const readRecovery = (body: unknown): ReadRequest<{ merchantId?: string | undefined; utr: string }> =>
  readAs(recovery, body)

/** A key that a caller can make up for each payin: a UUID, an invoice number. */
export const isIdempotencyKey = (text: unknown): text is string =>
  typeof text === 'string' && /^[\x21-\x7e]{1,128}$/.test(text)

export const IDEMPOTENCY_KEY_RULE = 'must be 1 to 128 visible ASCII characters, unique to each payin'

function readAs<T>(schema: z.ZodType<T>, body: unknown): ReadRequest<T> {
  const { data, error } = schema.safeParse(body)
  if (!error) return { kind: 'good', value: data }
  return { kind: 'wrong', faults: error.issues.flatMap(faultsOf) }
}

function faultsOf(issue: z.core.$ZodIssue): RequestFault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((field) => ({
      field,
      rule: 'unknown-field',
      message: 'is not a field of this request',
    }))
  }
  const rule = issue.code === 'custom' ? String(issue.params?.rule) : 'type'
  return [{ field: issue.path.join('.'), rule, message: issue.message }]
}
