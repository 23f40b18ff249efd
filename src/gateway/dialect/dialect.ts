import { z } from 'zod'
import type { GatewayPromises, QueryPolicy } from '../../domain/payout/next-query.ts'

/** The building blocks of settings. Each message follows the name of the setting and tells people what it must be. */
const settings = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject(shape, 'must be an object of settings')
const oneOf = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, `must be one of ${words.join(', ')}`)
const yesOrNo = z.boolean('must be true or false')
const whole = (wanted: string) => z.int(wanted).positive(wanted)
const milliseconds = whole('must be a whole number of milliseconds, at least 1')
const CODE = 'must be a retCode, a text that is not empty'
const codes = z.array(z.string(CODE).min(1, CODE), 'must be a list of retCodes')
const PATH = 'must be a path that begins with "/", without a query string'
const path = z.string(PATH).regex(/^\/[A-Za-z0-9._~/-]*$/, PATH)
const WAITS = 'must be a list of milliseconds, at least one'
const ZONE = 'must be an IANA time zone such as Asia/Kolkata'

/** How names, values and the key become a signature (gateway README, "Signature"). */
const sign = settings({
  /** Default `md5`. With `hmac-sha256` the key is the HMAC's key and also ends the text. */
  algorithm: oneOf(['md5', 'hmac-sha256']),
  /**
   * `whole-ignoring-case` (default): sorts the whole strings `name=value&`, ignoring case like Java's
   * String.CASE_INSENSITIVE_ORDER. `name`: sorts by name alone, respecting case, as PHP clients do.
   */
  sort: oneOf(['whole-ignoring-case', 'name']),
  /** The case of the hexadecimal digits; default `upper`. A signature in the other case is wrong. */
  hexCase: oneOf(['upper', 'lower']),
  /** The name before the key at the end of the text; default `key`. */
  keySuffix: oneOf(['key', 'appSecret']),
  /**
   * Whether fields with the empty text are signed (`name=&`), separately for requests, answers and callbacks; default nowhere. A
   * null is never signed.
   */
  emptyFields: settings({ requests: yesOrNo, answers: yesOrNo, callbacks: yesOrNo }),
  /**
   * Whether an answer with a retCode other than SUCCESS carries a signature; default yes. If not, such an answer counts without
   * one; its only proof is then its connection. A signature that is present must be valid.
   */
  failures: yesOrNo,
})

const queryCodes = settings({
  /** The gateway does not know the order. */
  notFound: codes,
  /** Asked too fast, or at a bad moment: the answer says nothing about the order. */
  retry: codes,
})

/** The retCodes other than SUCCESS, per operation. The contract lists none, so by default each is unknown. */
const retCodes = settings({
  apply: settings({
    /** The gateway will never pay it. */
    refused: codes,
    /** The gateway did not accept it; it may be sent again under the same order number. */
    retryLater: codes,
    /** Those of `retryLater` that mean that the balance does not cover the amount. */
    balanceShort: codes,
    /** The gateway has this order already; it may have paid it. */
    duplicate: codes,
  }),
  query: queryCodes,
  payinCreate: settings({
    /** The gateway did not create it, and will not as it stands. */
    refused: codes,
    /** The gateway did not create it; it may be requested again under the same order number. */
    retryLater: codes,
    /** The gateway has this order already. */
    duplicate: codes,
  }),
  payinQuery: queryCodes,
  payinRecovery: settings({
    /** The gateway will not recover it with this UTR, for example because the UTR belongs to another order. */
    refused: codes,
    /** The gateway knows no such order, or no payment under this UTR. */
    notFound: codes,
    /** The gateway did not look at it; it may be submitted again. */
    retryLater: codes,
  }),
})

/** What a gateway does where its contract is silent. `dialects/default.json` holds the defaults. */
export const dialectSchema = settings({
  /** Where parameters travel: as a form (default) or as JSON in the body, or in the query string without a body. */
  body: oneOf(['form', 'json', 'query']),
  sign,
  /**
   * Appended to the merchant's base URL. The contract shows two for the payout query (the other is
   * `/api/pay/query_order`) and two for the balance (the other is `/api/agentpay/query_order`).
   */
  paths: settings({
    apply: path,
    payoutQuery: path,
    balance: path,
    payinCreate: path,
    payinQuery: path,
    payinRecovery: path,
  }),
  retCodes,
  /**
   * What the gateway does with a second apply with the same mchOrderNo. `refused`: it promises never to pay one order number
   * twice, so payoutd sends an order that is confirmed absent again. `unknown` (default): a person decides.
   */
  duplicateApply: oneOf(['refused', 'unknown']),
  /** The accountNo of a payout to a VPA: the given one (default), or the VPA itself. */
  vpaAccountNo: oneOf(['given', 'vpa']),
  /** How long after a result became unknown "not found" begins to count, and how many confirm absence (default 10 min, 3). */
  absence: settings({ graceMs: milliseconds, confirmations: whole('must be a whole number, at least 1') }),
  /** Waits before each query about a payout; the last one repeats. Default 30 s, growing to half an hour. */
  queryAfterMs: z.array(milliseconds, WAITS).min(1, WAITS),
  /** How long a process that sends owns a claimed payout, or a payin that it creates; default 1 min. */
  leaseMs: milliseconds,
  /**
   * For the connection with its TLS handshake, from the last byte of the request to the headers of the answer, and for the body
   * of the answer. Default 5 s, 30 s and 10 s.
   */
  sendTimeoutMs: settings({ connect: milliseconds, headers: milliseconds, body: milliseconds }),
  /** The contract says yyyyMMddHHmmss without a zone; default Asia/Kolkata, where the gateway's users are. */
  reqTimeZone: z.string(ZONE).refine(isTimeZone, ZONE),
}).superRefine((dialect, context) => {
  const wrong = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
  const { balanceShort, ...apply } = dialect.retCodes.apply
  for (const [operation, lists] of Object.entries({ ...dialect.retCodes, apply })) {
    if (hasRepeats(['SUCCESS', ...Object.values(lists).flat()])) {
      wrong(['retCodes', operation], 'must have each code in one list only, and SUCCESS in none')
    }
  }
  if (!balanceShort.every((code) => apply.retryLater.includes(code))) {
    wrong(['retCodes', 'apply', 'balanceShort'], 'must hold only codes that stand in retryLater too')
  }
  if (dialect.queryAfterMs.some((wait, i, all) => wait < (all[i - 1] ?? 0))) {
    wrong(['queryAfterMs'], 'must not have a wait that is shorter than the one before it')
  }
  const sendMs = longestSendMs(dialect.sendTimeoutMs)
  if (sendMs >= dialect.leaseMs) {
    wrong(['leaseMs'], `must be more than a send can take by sendTimeoutMs, ${sendMs}`)
  }
  // If duplicates are refused a late send is harmless, so absence may be confirmed sooner.
  if (dialect.duplicateApply === 'unknown' && dialect.absence.graceMs <= dialect.leaseMs) {
    wrong(['absence', 'graceMs'], `must be more than leaseMs, ${dialect.leaseMs}`)
  }
})

export type Dialect = z.output<typeof dialectSchema>

/**
 * The longest that one call takes once it has a connection, in milliseconds. A dripping body can take its timeout twice, and
 * undici's timers of more than a second are up to half a second late each.
 */
export const longestSendMs = ({ connect, headers, body }: Dialect['sendTimeoutMs']): number =>
  connect + headers + 2 * body + 2_000

/** The gateway's promises about payouts. A refused order is not paid either. */
export const promisesOf = ({ duplicateApply, retCodes: { apply } }: Dialect): GatewayPromises => ({
  duplicatesRefused: duplicateApply === 'refused',
  notPaidCodes: [...apply.retryLater, ...apply.refused],
})

/** When to ask again about a payout, in the domain's terms. */
export const queryPolicyOf = (dialect: Dialect): QueryPolicy => ({
  queryAfterMs: dialect.queryAfterMs,
  graceMs: dialect.absence.graceMs,
  confirmations: dialect.absence.confirmations,
  ...promisesOf(dialect),
})

function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}

const hasRepeats = (list: readonly string[]): boolean => new Set(list).size < list.length
