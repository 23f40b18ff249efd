import { type Fields, type SignRules, verify } from './sign.ts'

/** The `sign` settings of a dialect that one signature can show; `emptyFields` for its direction. */
export type SignVariant = Omit<SignRules, 'emptyFields' | 'failures'> & { emptyFields: boolean }

/**
 * Every known signature variant of the gateway family under which `sign` is the signature over the other fields; none if the key
 * or a value is wrong. More than one if the fields cannot distinguish them: nothing is empty, or both sorts give the same order.
 * Among equals the dialect's default comes first.
 */
export const variantsThatVerify = (fields: Fields, key: string): SignVariant[] =>
  VARIANTS.filter(({ emptyFields: all, ...rules }) => {
    const emptyFields = { requests: all, answers: all, callbacks: all }
    return verify(fields, key, { ...rules, emptyFields, failures: true }, 'callbacks') === 'good'
  })

export const VARIANTS: readonly SignVariant[] = (['md5', 'hmac-sha256'] as const).flatMap((algorithm) =>
  (['upper', 'lower'] as const).flatMap((hexCase) =>
    (['key', 'appSecret'] as const).flatMap((keySuffix) =>
      (['whole-ignoring-case', 'name'] as const).flatMap((sort) =>
        [false, true].map((emptyFields) => ({ algorithm, hexCase, keySuffix, sort, emptyFields })),
      ),
    ),
  ),
)
