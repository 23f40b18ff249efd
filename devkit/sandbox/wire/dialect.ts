import { z } from 'zod'
import { pathsJson } from '../paths.ts'

/**
 * How names, values and the key become a signature. The format is that of the dialect files of payoutd's client; an
 * absent setting has the family's default.
 */
const sign = z.strictObject({
  /** With `hmac-sha256` the key is the HMAC's key and also comes at the end of the text. */
  algorithm: z.enum(['md5', 'hmac-sha256']).default('md5'),
  /** Whole `name=value&` strings ignoring case, or names only, by case. */
  sort: z.enum(['whole-ignoring-case', 'name']).default('whole-ignoring-case'),
  hexCase: z.enum(['upper', 'lower']).default('upper'),
  /** The name before the key at the end of the text. */
  keySuffix: z.enum(['key', 'appSecret']).default('key'),
  /** Where a parameter with an empty value is signed. */
  emptyFields: z
    .strictObject({
      requests: z.boolean().default(false),
      answers: z.boolean().default(false),
      callbacks: z.boolean().default(false),
    })
    .prefault({}),
  /** Whether an answer with a retCode other than SUCCESS carries `sign`. */
  failures: z.boolean().default(true),
})

/** Settings that only tell a client how to behave. The sandbox accepts and ignores them: it has its own codes. */
const clientOnly = z.unknown().optional()

/** A dialect in JSON. A setting that neither the sandbox nor a client knows is a fault. */
export const dialectJson = z
  .strictObject({
    extends: z.enum(['default', 'sandbox']).optional(),
    /** Where a request carries its parameters. */
    body: z.enum(['form', 'json', 'query']).default('form'),
    sign: sign.prefault({}),
    /** An operation without a path answers on every path that the contract shows for it. */
    paths: pathsJson.default({}),
    /** What a second apply with the same mchOrderNo does. `unknown` is the worst case: it is paid as well. */
    duplicateApply: z.enum(['refused', 'unknown']).default('refused'),
    retCodes: clientOnly,
    vpaAccountNo: clientOnly,
    absence: clientOnly,
    queryAfterMs: clientOnly,
    leaseMs: clientOnly,
    sendTimeoutMs: clientOnly,
    reqTimeZone: clientOnly,
  })
  .transform(({ body, sign, paths, duplicateApply }) => ({ body, sign, paths, duplicateApply }))

/** A dialect as requested: absent settings have their defaults. */
export type WantedDialect = z.input<typeof dialectJson>
export type Dialect = z.output<typeof dialectJson>
export type SignRules = Dialect['sign']

/** The direction of parameters: empty ones may be signed in one direction only. */
export type Traffic = keyof SignRules['emptyFields']

/** The family's default: a form, signed with MD5 in upper-case hex. */
export const STANDARD: Dialect = dialectJson.parse({})
