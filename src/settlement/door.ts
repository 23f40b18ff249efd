import type { ParsedCallback } from '../gateway/callback.ts'
import { Batcher } from '../platform/batcher.ts'
import type { Clock } from '../platform/clock.ts'
import type { HttpServer } from '../platform/http.ts'
import type { Logger } from '../platform/log.ts'
import type { Counter, Histogram } from '../platform/metrics.ts'
import { type Heard, type SettlementDeps, settleHeard } from './settlement.ts'

export type DoorDeps = SettlementDeps & {
  /** Per merchant: parses and verifies the raw query string of a callback. */
  readers: ReadonlyMap<string, (rawQuery: string) => ParsedCallback>
  clock: Clock
  log: Logger
  answered: Counter<'merchant' | 'answer'>
  took: Histogram
}

/** Callbacks beyond this many unanswered ones are turned away: the gateway comes again. */
const MOST_WAITING = 5_000

export const callbackPath = (merchantId: string): string =>
  `/callbacks/payout/${encodeURIComponent(merchantId)}`

/**
 * The callback door: POST and GET, parameters in the query string (gateway contract, "Payout callback").
 * Only what is stored is answered `success`. Bad signature 401, unknown merchant 404, a body 415, store down or too
 * much at once 503.
 */
export class CallbackDoor {
  readonly #deps: DoorDeps
  readonly #batches: Batcher<Heard, undefined>
  #slowestMs = 0
  #inHand = 0

  constructor(deps: DoorDeps) {
    this.#deps = deps
    this.#batches = new Batcher({ size: 500, waitMs: 4, lanes: 2 }, (heard) => settleHeard(heard, deps))
  }

  routes(server: HttpServer): void {
    server.register((scope, _options, done) => {
      // A callback with a body is 415: what it says there is signed by nobody.
      scope.removeAllContentTypeParsers()
      scope.route<{ Params: { merchantId: string } }>({
        method: ['GET', 'POST'],
        url: '/callbacks/payout/:merchantId',
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
    const began = this.#deps.clock.monotonic()
    this.#inHand++
    try {
      await this.#batches.add({ merchantId, mchOrderNo: report.mchOrderNo, source: 'CALLBACK', report })
    } catch (error) {
      this.#deps.log.error({ err: error, merchantId, mchOrderNo: report.mchOrderNo }, 'callback not stored')
      return { status: 503, text: 'not stored, come again' }
    } finally {
      this.#inHand--
      const tookMs = this.#deps.clock.monotonic() - began
      this.#slowestMs = Math.max(this.#slowestMs, tookMs)
      this.#deps.took.observe(tookMs / 1000)
    }
    return { status: 200, text: 'success' }
  }

  /** The longest that a callback waited for its commit since this was last called, in ms. */
  slowestMs(): number {
    const slowest = this.#slowestMs
    this.#slowestMs = 0
    return Math.round(slowest)
  }

  drain(): Promise<void> {
    return this.#batches.drain()
  }
}
