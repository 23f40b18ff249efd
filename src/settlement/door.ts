import type { Vouched } from '../gateway/callback.ts'
import { type CallbackReader, receiveCallbacks } from '../gateway/callback-route.ts'
import { keepRefused } from '../ledger/refused-evidence.ts'
import type { OrderReport } from '../payout/evidence.ts'
import { Batchers } from '../platform/batchers.ts'
import type { Clock } from '../platform/clock.ts'
import type { HttpServer } from '../platform/http.ts'
import type { Counter, Histogram } from '../platform/metrics.ts'
import { bare, type Heard, type SettlementDeps, settleHeard } from './settlement.ts'

export type DoorDeps = SettlementDeps & {
  /** Per merchant: parses and verifies the raw query string of a callback under every key of its accounts. */
  readers: ReadonlyMap<string, CallbackReader<Vouched<OrderReport>>>
  clock: Clock
  answered: Counter<'merchant' | 'answer'>
  took: Histogram
}

export const callbackPath = (merchantId: string): string =>
  `/callbacks/payout/${encodeURIComponent(merchantId)}`

/** The callback door of payouts, which tells how long callbacks wait: dispatch makes room for them. */
export class CallbackDoor {
  readonly #deps: DoorDeps
  readonly #batches: Batchers<Heard, undefined>
  #slowestMs = 0

  constructor(deps: DoorDeps) {
    this.#deps = deps
    this.#batches = new Batchers({ size: 500, waitMs: 4, lanes: 2, bare }, (heard) =>
      settleHeard(heard, deps),
    )
  }

  routes(server: HttpServer): void {
    const { readers, answered } = this.#deps
    const store = (merchantId: string, vouched: Vouched<OrderReport>) => this.#store(merchantId, vouched)
    receiveCallbacks(server, { url: '/callbacks/payout/:merchantId', readers, answered, store })
  }

  async #store(merchantId: string, { report, accountIds }: Vouched<OrderReport>): Promise<boolean> {
    const began = this.#deps.clock.monotonic()
    try {
      await this.#batches.add(merchantId, {
        merchantId,
        mchOrderNo: report.mchOrderNo,
        source: 'CALLBACK',
        report,
        accountIds,
      })
      return true
    } catch (error) {
      const orderNo = report.mchOrderNo
      this.#deps.log.error({ err: error, merchantId, mchOrderNo: orderNo }, 'callback not stored')
      await keepRefused(error, { merchantId, payoutId: null, orderNo, source: 'CALLBACK' }, this.#deps)
      return false
    } finally {
      const tookMs = this.#deps.clock.monotonic() - began
      this.#slowestMs = Math.max(this.#slowestMs, tookMs)
      this.#deps.took.observe(tookMs / 1000)
    }
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
