import { type Fields, type SignRules, verify } from './sign.ts'

/** The settings of a dialect's `sign` that one signature can show; `emptyFields` in the direction it went. */
export type SignVariant = Omit<SignRules, 'emptyFields' | 'failures'> & { emptyFields: boolean }

/**
 * Every way of signing known in the family under which the field `sign` is the signature over the other
 * fields; none if the key or a value is another. More than one where the fields do not tell them apart:
 * nothing is empty, or both sorts come to the same order. The dialect's default comes first among its equals.
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
