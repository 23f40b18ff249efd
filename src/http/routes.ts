import type { FastifyReply } from 'fastify'
import type { RequestFault } from '../domain/evidence.ts'
import { type CollectDeps, createPayin, recoverPayin } from '../payins/collect.ts'
import { qrSvg, qrText } from '../payins/qr.ts'
import { recoveryOutcome, type UtrRecoveryOutcome } from '../payins/recovery-outcome.ts'
import { IDEMPOTENCY_KEY_RULE, isIdempotencyKey, readPayinRequest, readRecovery } from '../payins/request.ts'
import { type PayinStory, payinJson, tellPayin } from '../payins/story.ts'
import type { HttpServer } from '../platform/http.ts'
import { atMost, type Database } from '../platform/postgres/postgres.ts'
import { readTraceparent } from '../platform/traceparent.ts'
import { readJsonBodies } from './json-body.ts'
import { sendProblem } from './problem.ts'

type MerchantInQuery = { Querystring: { merchantId?: string } }
type OnePayin = MerchantInQuery & { Params: { payinId: string } }

/** payoutd refuses further requests of a merchant with this many unanswered ones. */
const MOST_IN_HAND = 200
/** Connections for payins, for all merchants together; claims, answers and callbacks need the same pool. */
const MOST_CONNECTIONS = 2
const MOST_OF_ONE = 1

/**
 * The API of payins, for the internal port. Amounts in paise, times in milliseconds since the epoch; every error
 * is a problem (RFC 9457), with all faults of a request at once. `merchantId` may be left out if there is
 * only one merchant.
 *
 * - `POST /v1/payins`, with an `Idempotency-Key`: 201 with the payin as the gateway's answer left it (check its
 *   state), 200 for a repeat, 409 for another request under the same key. Its results carry its W3C `traceparent`.
 * - `GET /v1/payins/{payinId}`: the payin with its history.
 * - `POST /v1/payins/{payinId}/recover` with a `utr`: 202 once the gateway has accepted it.
 * - `GET /v1/payins/{payinId}/qr.svg`: what the payer scans, while the payin is open.
 *
 * If a merchant has 200 unanswered requests at this process, payoutd answers 503 with `Retry-After` and does nothing. All
 * merchants together use two connections to PostgreSQL at once, so that payouts do not wait for them. One merchant uses one
 * of these, so that the requests of another wait for one of its statements at most.
 */
export function payinRoutes(server: HttpServer, given: CollectDeps): void {
  const { collectors, log } = given
  const all = atMost(MOST_CONNECTIONS, given.ledger.db)
  const each = new Map([...collectors.keys()].map((merchantId) => [merchantId, atMost(MOST_OF_ONE, all)]))
  const depsOf = (merchantId: string): CollectDeps => ({
    ...given,
    ledger: { ...given.ledger, db: each.get(merchantId) as Database },
  })
  const inHand = new Map<string, number>()

  // A scope of its own, so that only its errors become problems, and only its numbers bigint.
  void server.register(
    (scope: HttpServer, _, done) => {
      readJsonBodies(scope)
      scope.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
        if (error instanceof TooManyInHand) return sendProblem(reply.header('retry-after', '1'), TOO_MANY)
        const { statusCode: status = 500, message } = error
        if (status < 500) return sendProblem(reply, { status, type: 'bad-request', title: message })
        log.error({ err: error, method: request.method, route: request.routeOptions.url }, 'request failed')
        return sendProblem(reply, {
          status: 503,
          type: 'unavailable',
          title:
            'payoutd could not reach the ledger: repeat the request, with the same Idempotency-Key if it had one',
        })
      })

      scope.post<MerchantInQuery>('/', async (request, reply) => {
        const idempotencyKey = request.headers['idempotency-key']
        const read = readPayinRequest(request.body)
        const faults = read.kind === 'wrong' ? read.faults : []
        if (!isIdempotencyKey(idempotencyKey)) {
          const fault = { field: 'Idempotency-Key', rule: 'idempotency-key', message: IDEMPOTENCY_KEY_RULE }
          return sendFaults(reply, [fault, ...faults])
        }
        if (read.kind === 'wrong') return sendFaults(reply, faults)
        const merchantId = merchantOf(read.value.merchantId, request.query.merchantId)
        if (merchantId === null) return sendFaults(reply, [UNKNOWN_MERCHANT])
        const traceparent = readTraceparent(request.headers.traceparent)
        const wanted = { merchantId, idempotencyKey, request: read.value.request, traceparent }
        const created = await admitted(merchantId, () => createPayin(wanted, depsOf(merchantId)))
        if (created.kind === 'conflict') {
          return sendProblem(reply, {
            status: 409,
            type: 'idempotency-conflict',
            title: 'this Idempotency-Key belongs to another request',
            payinId: created.payinId,
          })
        }
        if (created.kind === 'other-settings') return sendProblem(reply, OTHER_SETTINGS)
        const status = created.kind === 'created' ? 201 : 200
        return sendJson(reply, status, payinJson(created.payin))
      })

      scope.get<OnePayin>('/:payinId', async ({ params, query }, reply) => {
        const story = await storyOf(params.payinId, query.merchantId)
        return story ? sendJson(reply, 200, payinJson(story)) : sendProblem(reply, NO_SUCH_PAYIN)
      })

      scope.post<OnePayin>('/:payinId/recover', async ({ params, query, body }, reply) => {
        const read = readRecovery(body)
        if (read.kind === 'wrong') return sendFaults(reply, read.faults)
        const merchantId = merchantOf(read.value.merchantId, query.merchantId)
        if (merchantId === null) return sendFaults(reply, [UNKNOWN_MERCHANT])
        const key = { merchantId, payinId: params.payinId }
        const recovered = await admitted(merchantId, () =>
          recoverPayin(key, read.value.utr, depsOf(merchantId)),
        )
        if (recovered.kind === 'no-such-payin') return sendProblem(reply, NO_SUCH_PAYIN)
        if (recovered.kind === 'other-settings') return sendProblem(reply, OTHER_SETTINGS)
        const { outcome, message } = recoveryOutcome(recovered)
        if (outcome === 'submitted') return sendJson(reply, 202, payinJson(recovered.payin))
        return sendProblem(reply, {
          status: RECOVERY_STATUS[outcome],
          type: `recovery-${outcome}`,
          title: message,
        })
      })

      scope.get<OnePayin>('/:payinId/qr.svg', async ({ params, query }, reply) => {
        const story = await storyOf(params.payinId, query.merchantId)
        if (!story) return sendProblem(reply, NO_SUCH_PAYIN)
        const text = qrText(story)
        if (text !== null) return reply.type('image/svg+xml').send(await qrSvg(text))
        const title = `there is nothing to pay: the payin is ${story.state}`
        return sendProblem(reply, { status: 409, type: 'nothing-to-pay', title })
      })
      done()
    },
    { prefix: '/v1/payins' },
  )

  /** Named by the body or the query string; null: by neither, or by both differently, or the settings lack it. */
  function merchantOf(...names: (string | undefined)[]): string | null {
    const [given, ...different] = new Set(names.filter((name) => name !== undefined))
    if (different.length > 0) return null
    if (given !== undefined) return collectors.has(given) ? given : null
    const [only, ...others] = collectors.keys()
    return others.length === 0 ? (only ?? null) : null
  }

  async function storyOf(payinId: string, given: string | undefined): Promise<PayinStory | null> {
    const merchantId = merchantOf(given)
    if (merchantId === null) return null
    return admitted(merchantId, () => tellPayin(depsOf(merchantId).ledger.db, { merchantId, payinId }))
  }

  async function admitted<T>(merchantId: string, work: () => Promise<T>): Promise<T> {
    const before = inHand.get(merchantId) ?? 0
    if (before >= MOST_IN_HAND) throw new TooManyInHand()
    inHand.set(merchantId, before + 1)
    try {
      return await work()
    } finally {
      inHand.set(merchantId, (inHand.get(merchantId) as number) - 1)
    }
  }
}

class TooManyInHand extends Error {}

const TOO_MANY = {
  status: 503,
  type: 'busy',
  title: `${MOST_IN_HAND} requests of this merchant are not answered yet, so payoutd did nothing: repeat the request after a second`,
}

const UNKNOWN_MERCHANT: RequestFault = {
  field: 'merchantId',
  rule: 'merchant',
  message: 'must be a merchant in the settings; you can omit it if there is only one',
}

const OTHER_SETTINGS = {
  status: 503,
  type: 'other-settings',
  title:
    'other gateway settings of the merchant are in force than those of this process, so it did nothing: repeat the request at a process that has them',
}
const NO_SUCH_PAYIN = { status: 404, type: 'no-such-payin', title: 'there is no such payin of this merchant' }

const RECOVERY_STATUS: Record<Exclude<UtrRecoveryOutcome['outcome'], 'submitted'>, number> = {
  refused: 422,
  'not-found': 422,
  impossible: 409,
  'retry-later': 503,
  unknown: 504,
}

const sendFaults = (reply: FastifyReply, errors: RequestFault[]) =>
  sendProblem(reply, {
    status: 400,
    type: 'invalid-request',
    title: 'the request breaks these rules',
    errors,
  })

const sendJson = (reply: FastifyReply, status: number, json: string) =>
  reply.code(status).type('application/json').send(json)
