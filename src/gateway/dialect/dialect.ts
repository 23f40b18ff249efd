import { z } from 'zod'
import type { QueryPolicy } from '../../domain/payout/next-query.ts'
import type { GatewayPromises } from '../../domain/payout/send-again.ts'

/** What settings are made of. Each message says what is wanted, for people; it follows the name of the setting. */
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
  /** Default `md5`. With `hmac-sha256` the key is the HMAC's key and stands at the end of the text as well. */
  algorithm: oneOf(['md5', 'hmac-sha256']),
  /**
   * `whole-ignoring-case` (default): the strings `name=value&` are sorted whole, ignoring case the way Java's
   * String.CASE_INSENSITIVE_ORDER does. `name`: by name alone, minding case, as PHP clients do.
   */
  sort: oneOf(['whole-ignoring-case', 'name']),
  /** Of the hexadecimal digits; default `upper`. A signature in the other case is wrong. */
  hexCase: oneOf(['upper', 'lower']),
  /** The name before the key at the end of the text; default `key`. */
  keySuffix: oneOf(['key', 'appSecret']),
  /**
   * Whether a field that holds the empty text is signed (`name=&`), apart for what we send, for the answers to
   * it and for callbacks; default nowhere. A null is never signed.
   */
  emptyFields: settings({ requests: yesOrNo, answers: yesOrNo, callbacks: yesOrNo }),
  /**
   * Whether an answer with a retCode other than SUCCESS carries a signature; default yes. Where it says no, such an
   * answer counts without one: its only proof is then the connection it came on, which must be TLS or of this machine
   * for a refusal to count. One that is there must be good.
   */
  failures: yesOrNo,
})

const queryCodes = settings({
  /** The gateway does not know the order. */
  notFound: codes,
  /** Asked too fast, or at a bad moment: says nothing about the order. */
  retry: codes,
})

/** The retCodes other than SUCCESS, per operation. The contract shows none, so by default each is unknown. */
const retCodes = settings({
  apply: settings({
    /** Will never be paid. */
    refused: codes,
    /** Was not accepted, and may be sent again under the same order number. */
    retryLater: codes,
    /** Those among `retryLater` that say the balance does not cover the amount. */
    balanceShort: codes,
    /** The gateway has this order already; it may have paid it. */
    duplicate: codes,
  }),
  query: queryCodes,
  payinCreate: settings({
    /** Was not created, and will not be as it stands. */
    refused: codes,
    /** Was not created, and may be asked for again under the same order number. */
    retryLater: codes,
    /** The gateway has this order already. */
    duplicate: codes,
  }),
  payinQuery: queryCodes,
  payinRecovery: settings({
    /** Will not be recovered with this UTR: it belongs to another order, for one. */
    refused: codes,
    /** The gateway knows no such order, or no payment under this UTR. */
    notFound: codes,
    /** Was not looked at, and may be submitted again. */
    retryLater: codes,
  }),
})

/** What a gateway does where its contract is silent. `dialects/default.json` holds the defaults. */
export const dialectSchema = settings({
  /** How parameters travel: a form (default) or JSON in the body, or in the query string with no body. */
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
   * What a second apply with the same mchOrderNo comes to. `refused`: the gateway promises that it never pays
   * one order number twice, so an order that is proved absent is sent again. `unknown` (default): a person decides.
   */
  duplicateApply: oneOf(['refused', 'unknown']),
  /** The accountNo of a payout to a VPA: the one that was given (default), or the VPA itself. */
  vpaAccountNo: oneOf(['given', 'vpa']),
  /** "Not found" counts this long after a result became unknown, and proves absence after so many (default 10 min, 3). */
  absence: settings({ graceMs: milliseconds, confirmations: whole('must be a whole number, at least 1') }),
  /** Waits before each query about a payout; the last one repeats. Default 30 s, growing to half an hour. */
  queryAfterMs: z.array(milliseconds, WAITS).min(1, WAITS),
  /** How long a claimed payout, or a payin that is being created, belongs to the process that sends it; default 1 min. */
  leaseMs: milliseconds,
  /**
   * For the connection with its TLS handshake, from the request's last byte to the answer's headers, and for the
   * answer's body. Default 5 s, 30 s and 10 s.
   */
  sendTimeoutMs: settings({ connect: milliseconds, headers: milliseconds, body: milliseconds }),
  /** The contract says yyyyMMddHHmmss and no zone; default Asia/Kolkata, where the gateway's users are. */
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
  // With duplicates refused a late send is harmless, so there absence may be believed sooner.
  if (dialect.duplicateApply === 'unknown' && dialect.absence.graceMs <= dialect.leaseMs) {
    wrong(['absence', 'graceMs'], `must be more than leaseMs, ${dialect.leaseMs}`)
  }
})

export type Dialect = z.output<typeof dialectSchema>

/**
 * The longest that one call takes once a connection is free for it, in milliseconds: a body that drips can
 * take its time twice, and undici's timers past a second are up to half a second late, each.
 */
export const longestSendMs = ({ connect, headers, body }: Dialect['sendTimeoutMs']): number =>
  connect + headers + 2 * body + 2_000

/** When to look again at a payout, as the domain wants to know it. */
export const queryPolicyOf = ({ queryAfterMs, absence, duplicateApply }: Dialect): QueryPolicy => ({
  queryAfterMs,
  graceMs: absence.graceMs,
  confirmations: absence.confirmations,
  resendWhenAbsent: duplicateApply === 'refused',
})

/** What its gateway promises about payouts. A refused order is not paid either. */
export const promisesOf = ({ duplicateApply, retCodes }: Dialect): GatewayPromises => ({
  duplicatesRefused: duplicateApply === 'refused',
  notPaidCodes: [...retCodes.apply.retryLater, ...retCodes.apply.refused],
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
