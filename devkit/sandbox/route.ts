import type { Operations } from './operations.ts'
import { namesAt, type Paths } from './paths.ts'
import { isPayinQuery } from './payins/payin-rules.ts'
import type { Params } from './wire/form.ts'

const OPERATIONS = {
  apply: 'apply',
  payoutQuery: 'queryPayout',
  balance: 'queryBalance',
  payinCreate: 'createPayin',
  payinQuery: 'queryPayin',
  payinRecovery: 'recoverPayin',
} as const

/** The operation that a request to `path` means; undefined if there is none. */
export function operationAt(path: string, params: Params, paths: Paths): keyof Operations | undefined {
  const [name, other] = namesAt(path, paths)
  if (other) return isPayinQuery(params) ? 'queryPayin' : 'queryPayout'
  return name && OPERATIONS[name]
}
