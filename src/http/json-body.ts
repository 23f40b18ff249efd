import type { HttpServer } from '../platform/http.ts'

/** Every sender's JSON keeps so many digits; a longer number may be rounded already. */
const WHOLE = /^-?[0-9]{1,15}$/
const BYTE_ORDER_MARK = /^\ufeff/

/**
 * Makes the bodies of a scope's requests JSON in which only a bigint is a number as it was written. Any other (with a fraction
 * or an exponent, or of more than 15 digits) stays a `number`, which may be rounded: no rule may take it for an amount.
 */
export function readJsonBodies(scope: HttpServer): void {
  scope.addContentTypeParser<string>(
    'application/json',
    { parseAs: 'string' },
    async (_: unknown, body: string) => {
      try {
        return JSON.parse(body.replace(BYTE_ORDER_MARK, ''), wholeAsBigint)
      } catch {
        throw Object.assign(new Error('the body is not JSON: send one object, in UTF-8'), { statusCode: 400 })
      }
    },
  )
}

/** TypeScript does not know the third argument. */
const wholeAsBigint = ((_: string, value: unknown, { source = '' }: { source?: string }): unknown =>
  typeof value === 'number' && WHOLE.test(source) ? BigInt(source) : value) as (
  name: string,
  value: unknown,
) => unknown
