import { z } from 'zod'

/** The paths that the contract shows for each operation, under its name in a dialect's `paths`. */
const SHOWN = {
  apply: ['/api/agentpay/apply'],
  payoutQuery: ['/api/pay/orderquery', '/api/pay/query_order'],
  balance: ['/api/agentpay/query_balance', '/api/agentpay/query_order'],
  payinCreate: ['/api/pay/neworder'],
  payinQuery: ['/api/pay/orderquery'],
  payinRecovery: ['/api/pay/replace'],
} as const

type PathName = keyof typeof SHOWN

const NAMES = Object.keys(SHOWN) as PathName[]
const QUERIES: readonly PathName[] = ['payoutQuery', 'payinQuery']

const path = z
  .string()
  .regex(/^\/[A-Za-z0-9._~/-]*$/, 'must be a path that begins with "/", without a query string')
  .regex(/^(?!\/(_sandbox|checkout)\/)/, 'stands for a page of the sandbox itself')

/** The path of each named operation. Only the two queries may share one: their fields differ. */
export const pathsJson = z
  .strictObject({
    apply: path.optional(),
    payoutQuery: path.optional(),
    balance: path.optional(),
    payinCreate: path.optional(),
    payinQuery: path.optional(),
    payinRecovery: path.optional(),
  })
  .superRefine((paths, context) => {
    for (const [name, named] of Object.entries(paths)) {
      const all = named === undefined ? [] : namesAt(named, paths)
      if (all.length < 2 || all.every((each) => QUERIES.includes(each))) continue
      const message = `answers for ${all.join(' and ')}: each needs a path of its own`
      context.addIssue({ code: 'custom', path: [name], message })
    }
  })

export type Paths = { readonly [name in PathName]?: string | undefined }

/** The operations that answer at `path`: one, both queries, or none. */
export const namesAt = (path: string, paths: Paths): PathName[] =>
  NAMES.filter((name) => {
    const own = paths[name]
    return own === undefined ? (SHOWN[name] as readonly string[]).includes(path) : own === path
  })
