import { z } from 'zod'
import { pathsJson } from '../paths.ts'

/**
 * How names, values and the key become a signature. The format is the one of the dialect files that payoutd's
 * client reads; what is left out is the family's default.
 */
const sign = z.strictObject({
  /** With `hmac-sha256` the key is the HMAC's key and stands at the end of the text as well. */
  algorithm: z.enum(['md5', 'hmac-sha256']).default('md5'),
  /** Whole `name=value&` strings ignoring case, or names alone minding it. */
  sort: z.enum(['whole-ignoring-case', 'name']).default('whole-ignoring-case'),
  hexCase: z.enum(['upper', 'lower']).default('upper'),
  /** The name before the key at the end of the text. */
  keySuffix: z.enum(['key', 'appSecret']).default('key'),
  /** Where a parameter that holds the empty text is signed. */
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

/** What only tells a client how to behave. It may be there, and is not looked at: the sandbox has its own codes. */
const clientOnly = z.unknown().optional()

/** A dialect in JSON. A setting that neither the sandbox nor a client knows is a fault. */
export const dialectJson = z
  .strictObject({
    extends: z.enum(['default', 'sandbox']).optional(),
    /** Where the parameters of a request travel. */
    body: z.enum(['form', 'json', 'query']).default('form'),
    sign: sign.prefault({}),
    /** An operation that is not named answers on every path that the contract shows for it. */
    paths: pathsJson.default({}),
    /** What a second apply with the same mchOrderNo comes to. `unknown` is the worst of it: it is paid as well. */
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

/** A dialect as somebody asks for it: what is left out has its default. */
export type WantedDialect = z.input<typeof dialectJson>
export type Dialect = z.output<typeof dialectJson>
export type SignRules = Dialect['sign']

/** Which way parameters go: empty ones may be signed in one direction only. */
export type Traffic = keyof SignRules['emptyFields']

/** The family's default: a form, signed with MD5 in upper-case hex. */
export const STANDARD: Dialect = dialectJson.parse({})
