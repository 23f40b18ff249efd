import type { ParsedCallback } from '../gateway/callback.ts'
import type { PayinCallback } from '../gateway/payin-answers.ts'
import { Batcher } from '../platform/batcher.ts'
import type { HttpServer } from '../platform/http.ts'
import type { Logger } from '../platform/log.ts'
import type { Counter } from '../platform/metrics.ts'
import { type Heard, type SettlementDeps, settleHeard } from './settlement.ts'

export type PayinDoorDeps = SettlementDeps & {
  /** Per merchant: parses and verifies the raw query string of a callback. */
  readers: ReadonlyMap<string, (rawQuery: string) => ParsedCallback<PayinCallback>>
  log: Logger
  answered: Counter<'merchant' | 'answer'>
}

/** Callbacks beyond this many unanswered ones are turned away: the gateway comes again. */
const MOST_WAITING = 5_000

export const payinCallbackPath = (merchantId: string): string =>
  `/callbacks/payin/${encodeURIComponent(merchantId)}`

/**
 * The callback door of payins: POST and GET, parameters in the query string (gateway contract, "Payin
 * callback"). Only what is stored is answered `success`. Bad signature 401, unknown merchant 404, a body 415, store down
 * or too much at once 503.
 */
export class PayinDoor {
  readonly #deps: PayinDoorDeps
  readonly #batches: Batcher<Heard, undefined>
  #inHand = 0

  constructor(deps: PayinDoorDeps) {
    this.#deps = deps
    this.#batches = new Batcher({ size: 500, waitMs: 4, lanes: 1 }, (heard) => settleHeard(heard, deps))
  }

  routes(server: HttpServer): void {
    server.register((scope, _options, done) => {
      // A callback with a body is 415: what it says there is signed by nobody.
      scope.removeAllContentTypeParsers()
      scope.route<{ Params: { merchantId: string } }>({
        method: ['GET', 'POST'],
        url: '/callbacks/payin/:merchantId',
        handler: async (request, reply) => {
          const { merchantId } = request.params
          const rawQuery = request.raw.url?.split('?', 2)[1] ?? ''
          const { status, text } = await this.#answer(merchantId, rawQuery)
          const known = this.#deps.readers.has(merchantId) ? merchantId : 'unknown'
          this.#deps.answered.inc({ merchant: known, answer: String(status) })
          return reply.code(status).type('text/plain').send(text)
        },
      })
      done()
    })
  }

  async #answer(merchantId: string, rawQuery: string): Promise<{ status: number; text: string }> {
    const read = this.#deps.readers.get(merchantId)
    if (!read) return { status: 404, text: 'unknown merchant' }
    if (this.#inHand >= MOST_WAITING) return { status: 503, text: 'busy, come again' }
    const verdict = read(rawQuery)
    if (verdict.kind === 'bad-signature') return { status: 401, text: 'bad signature' }
    if (verdict.kind === 'malformed') return { status: 400, text: `malformed: ${verdict.why}` }
    const { report } = verdict
    this.#inHand++
    try {
      await this.#batches.add({ merchantId, payinId: report.mchOrderNo, source: 'CALLBACK', report })
    } catch (error) {
      this.#deps.log.error({ err: error, merchantId, payinId: report.mchOrderNo }, 'callback not stored')
      return { status: 503, text: 'not stored, come again' }
    } finally {
      this.#inHand--
    }
    return { status: 200, text: 'success' }
  }

  drain(): Promise<void> {
    return this.#batches.drain()
  }
}
