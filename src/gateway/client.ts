import type { ApplyAnswer, BalanceAnswer, QueryAnswer } from '../payout/answers.ts'
import type { Exchange } from '../payout/evidence.ts'
import type { Clock } from '../platform/clock.ts'
import { type ApplyOrder, applyParams, bankDetails } from './apply.ts'
import { readApplyAnswer } from './apply-answer.ts'
import { balanceParams } from './balance.ts'
import { readBalanceAnswer } from './balance-answer.ts'
import type { Dialect } from './dialect.ts'
import { exchangeOf, redactRequest } from './exchange.ts'
import { findForgery } from './forgery.ts'
import { type Heard, hear, readBody, type Signed } from './hear.ts'
import { type QueryBy, queryParams } from './query.ts'
import { readQueryAnswer } from './query-answer.ts'
import { reqTimeIn } from './req-time.ts'
import { encode, type Params } from './request.ts'
import { settingsHash } from './settings-hash.ts'
import { signature } from './sign.ts'
import { createTransport } from './transport.ts'

/** One merchant at one gateway. No method rejects: whatever happens on the way is an answer. */
export interface GatewayClient {
  /**
   * Submits a payout. `mayStillSend` is asked in the tick that hands over the bytes (the lease, by a monotonic
   * clock): when it says no the answer is `not-sent`, reason `lease-ended`. A value that could forge a signed
   * field is `not-sent` too, reason `unsafe-value`, and the exchange's note says what to write instead.
   */
  apply(order: ApplyOrder, lease: { mayStillSend: () => boolean }): Promise<ApplyAnswer>
  query(by: QueryBy): Promise<QueryAnswer>
  balance(): Promise<BalanceAnswer>
  /** Other than last time: what the gateway said that it does not know must be asked anew. Holds no secret. */
  readonly settingsHash: string
  /** Waits for the calls under way, each of which ends by its own timeouts. */
  close(): Promise<void>
}

/**
 * A client with a pool of its own, of at most `connections`. `baseUrl` is http or https, and may have a
 * path. `key` is used as given, and stays in this closure: nothing that can be printed holds it.
 */
export function createGatewayClient(settings: {
  baseUrl: string
  mchId: string
  key: string
  dialect: Dialect
  connections: number
  clock: Clock
}): GatewayClient {
  const { mchId, key, dialect, connections, clock } = settings
  const { origin, prefix } = parseBaseUrl(settings.baseUrl)
  const transport = createTransport({ origin, connections, sendTimeoutMs: dialect.sendTimeoutMs, clock })
  const formatReqTime = reqTimeIn(dialect.reqTimeZone)
  const reqTime = () => formatReqTime(clock.now())

  async function call(
    path: string,
    params: Params,
    options: { signed: Signed; secrets: readonly string[]; mayStillSend: () => boolean },
  ): Promise<{ heard: Heard; exchange: Exchange }> {
    const forgery = findForgery(params)
    if (forgery) {
      const request = redactRequest(params, options.secrets)
      const note = `${forgery.field} ${forgery.message}`
      return { heard: { kind: 'not-sent', reason: 'unsafe-value' }, exchange: { request, note } }
    }
    const signed = new Map(params).set('sign', signature(params, key, dialect.sign, 'requests'))
    const sent = await transport.send(encode(signed, prefix + path, dialect.body), options.mayStillSend)
    const { text, fields } = readBody(sent)
    return {
      heard: hear(sent, fields, key, dialect.sign, options.signed),
      exchange: exchangeOf(params, sent, text, fields, options.secrets),
    }
  }

  return {
    async apply(order, { mayStillSend }) {
      const params = applyParams(order, mchId, dialect.vpaAccountNo)
      const secrets = bankDetails(order)
      const { heard, exchange } = await call(dialect.paths.apply, params, {
        signed: 'required',
        secrets,
        mayStillSend,
      })
      return readApplyAnswer(heard, dialect.retCodes.apply, secrets, exchange)
    },

    async query(by) {
      const params = queryParams(by, mchId, reqTime())
      const { heard, exchange } = await call(dialect.paths.payoutQuery, params, {
        signed: 'required',
        secrets: [],
        mayStillSend: always,
      })
      return readQueryAnswer(heard, by, dialect.retCodes.query, exchange)
    },

    async balance() {
      const params = balanceParams(mchId, reqTime())
      const { heard, exchange } = await call(dialect.paths.balance, params, {
        signed: 'optional',
        secrets: [],
        mayStillSend: always,
      })
      return readBalanceAnswer(heard, exchange)
    },

    settingsHash: settingsHash({ baseUrl: origin + prefix, mchId, dialect, key }),
    close: () => transport.close(),
  }
}

const always = () => true

function parseBaseUrl(baseUrl: string): { origin: string; prefix: string } {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new Error(
      'the base URL of the gateway must be http or https, without user, query string or fragment',
    )
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') }
}
