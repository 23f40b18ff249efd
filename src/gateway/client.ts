import type { Exchange, RequestFault } from '../domain/evidence.ts'
import type { ApplyAnswer, BalanceAnswer, QueryAnswer } from '../domain/gateway-answers.ts'
import type {
  PayinCreateAnswer,
  PayinQueryAnswer,
  PayinRecoverAnswer,
} from '../domain/payin/gateway-answers.ts'
import type { Clock } from '../platform/running/clock.ts'
import { crashPoint } from '../platform/running/crash-points.ts'
import { parseBaseUrl } from './base-url.ts'
import { type ApplyOrder, applyParams, applySchema, bankDetails } from './calls/apply.ts'
import { readApplyAnswer } from './calls/apply-answer.ts'
import { balanceParams } from './calls/balance.ts'
import { readBalanceAnswer } from './calls/balance-answer.ts'
import { type PayinOrder, payerDetails, payinCreateParams, payinCreateSchema } from './calls/payin-create.ts'
import { readPayinCreateAnswer } from './calls/payin-create-answer.ts'
import { type PayinQueryBy, payinQueryParams, payinQuerySchema } from './calls/payin-query.ts'
import { readPayinQueryAnswer } from './calls/payin-query-answer.ts'
import { type PayinRecovery, payinRecoveryParams, payinRecoverySchema } from './calls/payin-recovery.ts'
import { readPayinRecoverAnswer } from './calls/payin-recovery-answer.ts'
import { type QueryBy, queryParams, querySchema } from './calls/query.ts'
import { readQueryAnswer } from './calls/query-answer.ts'
import type { Dialect } from './dialect/dialect.ts'
import { settingsHash } from './dialect/settings-hash.ts'
import type { TlsFiles } from './transport/connections.ts'
import { type Belongs, createTransport } from './transport/transport.ts'
import { exchangeOf, redactRequest } from './wire/exchange.ts'
import { reqTimeIn } from './wire/req-time.ts'
import { encode, type Params } from './wire/request.ts'
import { faultsIn } from './wire/request-rules.ts'
import { signature } from './wire/sign.ts'
import { unsafeValuesIn } from './wire/unsafe-values.ts'
import {
  type AnswerFields,
  readBody,
  type Signed,
  type VerifiedAnswer,
  verifyAnswer,
} from './wire/verify-answer.ts'

/** One merchant at one gateway. No method rejects: every failure is an answer. */
export interface GatewayClient {
  /**
   * Submits a payout. The client calls `mayStillSend` in the tick that hands over the bytes (it checks the lease, by a monotonic
   * clock). If it returns false the answer is `not-sent`, reason `lease-ended`; if it throws, `lease-check-failed`. An order with
   * a value that could forge a signed field (`unsafe-value`) or that breaks a rule of the contract (`invalid-value`) is
   * `not-sent` too. The same holds for every operation; the exchange's `faults` name each field and what to write instead.
   */
  apply(order: ApplyOrder, lease: { mayStillSend: () => boolean }): Promise<ApplyAnswer>
  query(by: QueryBy): Promise<QueryAnswer>
  balance(): Promise<BalanceAnswer>
  /** `mayStillSend` as for `apply`. */
  payinCreate(order: PayinOrder, lease: { mayStillSend: () => boolean }): Promise<PayinCreateAnswer>
  /** With `executeNotify` the gateway sends the payin's callback again. */
  payinQuery(by: PayinQueryBy, options: { executeNotify: boolean }): Promise<PayinQueryAnswer>
  /** Asks the gateway to look for the payment with this UTR and to count it for this order. */
  payinRecover(recovery: PayinRecovery): Promise<PayinRecoverAnswer>
  /** Changes with the settings: a new hash means that every "not found" so far must be asked again. Contains no secret. */
  readonly settingsHash: string
  /** Waits for the calls under way; their own timeouts end them. */
  close(): Promise<void>
}

/**
 * A client with its own pool of at most `connections`. `baseUrl` is http or https, and may have a path. The client uses `key` as
 * given and keeps it in this closure, so nothing printable contains it.
 */
export function createGatewayClient(
  settings: {
    baseUrl: string
    mchId: string
    key: string
    dialect: Dialect
    connections: number
    clock: Clock
    tls?: TlsFiles
    /** Called, and waited for, when the answer to a question about an order, or (null) the balance, is about another order. */
    mixedUp?: (orderNo: string | null) => Promise<void>
  },
  openTransport: typeof createTransport = createTransport,
): GatewayClient {
  const { mchId, key, dialect, connections, clock, tls = {}, mixedUp } = settings
  const { origin, prefix } = parseBaseUrl(settings.baseUrl)
  const transport = openTransport({ origin, connections, sendTimeoutMs: dialect.sendTimeoutMs, tls, clock })
  const whose = ownership()
  const formatReqTime = reqTimeIn(dialect.reqTimeZone)
  const reqTime = () => formatReqTime(clock.now())

  async function call(
    operation: keyof Dialect['paths'],
    params: Params,
    options: {
      faults?: readonly RequestFault[]
      signed?: Signed
      secrets?: readonly string[]
      mayStillSend?: () => boolean
    } = {},
  ): Promise<{ answer: VerifiedAnswer; exchange: Exchange }> {
    const { faults = [], signed = 'required', secrets = [], mayStillSend = always } = options
    const forgeries = unsafeValuesIn(params)
    if (faults.length + forgeries.length > 0) {
      const reason = forgeries.length > 0 ? 'unsafe-value' : 'invalid-value'
      return {
        answer: { kind: 'not-sent', reason },
        exchange: refusal(params, [...faults, ...forgeries], secrets),
      }
    }
    const complete = new Map(params).set('sign', signature(params, key, dialect.sign, 'requests'))
    const request = encode(complete, prefix + dialect.paths[operation], dialect.body)
    const handOver = () => {
      const may = mayStillSend()
      if (may) crashPoint('before send', operation)
      return may
    }
    let read: ReturnType<typeof readBody> | undefined
    const sent = await transport.send(request, handOver, (answer) => {
      read = readBody(answer)
      return whose(read.fields, params, operation)
    })
    crashPoint('after send', operation)
    if (sent.kind === 'lost' && sent.reason === 'other-order') await mixedUp?.(orderIn(params))
    const { text, fields } = (sent.kind === 'answered' && read) || readBody(sent)
    return {
      answer: verifyAnswer(sent, fields, key, dialect.sign, signed),
      exchange: exchangeOf(params, sent, text, fields, secrets),
    }
  }

  return {
    async apply(order, lease) {
      const params = applyParams(order, mchId, dialect.vpaAccountNo)
      const secrets = bankDetails(order)
      const faults = faultsIn(applySchema, order)
      const mayStillSend = () => lease.mayStillSend()
      const { answer, exchange } = await call('apply', params, { faults, secrets, mayStillSend })
      return readApplyAnswer(answer, dialect.retCodes.apply, secrets, exchange)
    },

    async query(by) {
      const params = queryParams(by, mchId, reqTime())
      const faults = faultsIn(querySchema, by)
      const { answer, exchange } = await call('payoutQuery', params, { faults })
      return readQueryAnswer(answer, by, dialect.retCodes.query, exchange)
    },

    async balance() {
      const params = balanceParams(mchId, reqTime())
      const { answer, exchange } = await call('balance', params, { signed: 'optional' })
      return readBalanceAnswer(answer, exchange)
    },

    async payinCreate(order, lease) {
      const params = payinCreateParams(order, mchId)
      const secrets = payerDetails(order)
      const faults = faultsIn(payinCreateSchema, order)
      const options = { faults, secrets, mayStillSend: () => lease.mayStillSend() }
      const { answer, exchange } = await call('payinCreate', params, options)
      return readPayinCreateAnswer(answer, dialect.retCodes.payinCreate, secrets, exchange)
    },

    async payinQuery(by, options) {
      const request = { ...by, ...options }
      const params = payinQueryParams(by, mchId, request.executeNotify)
      const faults = faultsIn(payinQuerySchema, request)
      const { answer, exchange } = await call('payinQuery', params, { faults })
      return readPayinQueryAnswer(answer, by, dialect.retCodes.payinQuery, exchange)
    },

    async payinRecover(recovery) {
      const params = payinRecoveryParams(recovery, mchId)
      const faults = faultsIn(payinRecoverySchema, recovery)
      const { answer, exchange } = await call('payinRecovery', params, { faults })
      return readPayinRecoverAnswer(answer, recovery.payOrderId, dialect.retCodes.payinRecovery, exchange)
    },

    settingsHash: settingsHash({ baseUrl: origin + prefix, mchId, dialect, key }),
    close: () => transport.close(),
  }
}

const always = () => true

/** The order that a request names, or null for the balance. */
const orderIn = (params: Params): string | null => {
  const name = NUMBERS.find((number) => params.has(number))
  return name === undefined ? null : String(params.get(name))
}

/** The numbers by which requests and answers name an order, and those that the gateway gives it, each to one order only. */
const NUMBERS = ['mchOrderNo', 'agentpayOrderId', 'payOrderId']
const GIVEN: Partial<Record<keyof Dialect['paths'], string>> = {
  apply: 'agentpayOrderId',
  payinCreate: 'payOrderId',
}
/** More than there are connections; a process may have a thousand clients. */
const MOST_GIVEN = 500

/** Tells by its numbers whose answer one is. A failure need name no order; the success of a query names both. */
function ownership(): (
  fields: AnswerFields | null,
  params: Params,
  operation: keyof Dialect['paths'],
) => ReturnType<Belongs> {
  /** Which order has each number that the gateway gave, by operation. */
  const owners = new Map<string, string>()
  /** Whether a number in it is known to be another order's. */
  const namesOther = (fields: AnswerFields, params: Params): boolean =>
    Object.entries(GIVEN).some(([operation, name]) => {
      const owner = owners.get(`${operation} ${fields.get(name)}`)
      return owner !== undefined && params.has('mchOrderNo') && owner !== params.get('mchOrderNo')
    })
  return (fields, params, operation) => {
    if (fields === null) return 'perhaps'
    const named = NUMBERS.filter((name) => fields.get(name) && (params.get(name) || operation === 'balance'))
    if (named.some((name) => fields.get(name) !== params.get(name))) return 'not-ours'
    if (fields.get('retCode') !== 'SUCCESS' || operation === 'balance')
      return namesOther(fields, params) ? 'not-ours' : 'perhaps'
    if (fields.get('availableAmount')) return 'not-ours'
    const given = fields.get(GIVEN[operation] ?? '')
    if (!given) return named.length > 0 ? 'ours' : 'perhaps'
    const mchOrderNo = String(params.get('mchOrderNo'))
    const number = `${operation} ${given}`
    const owner = owners.get(number)
    if (owner && owner !== mchOrderNo) return 'not-ours'
    owners.set(number, mchOrderNo)
    const [oldest] = owners.keys()
    if (owners.size > MOST_GIVEN && oldest !== undefined) owners.delete(oldest)
    return 'ours'
  }
}

/** The record of a request that the client did not send because of its values. */
const refusal = (params: Params, faults: RequestFault[], secrets: readonly string[]): Exchange => ({
  request: redactRequest(params, secrets),
  note: faults.map(({ field, message }) => `${field} ${message}`).join('; '),
  faults,
})
