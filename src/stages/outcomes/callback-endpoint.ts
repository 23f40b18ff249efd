import type { OrderReport } from '../../domain/evidence.ts'
import type { Vouched } from '../../gateway/callbacks/callback.ts'
import {
  type CallbackReader,
  type Keeping,
  receiveCallbacks,
} from '../../gateway/callbacks/callback-route.ts'
import type { KeptCallbacks, UnverifiedCallback } from '../../ledger/callbacks/kept-callbacks.ts'
import { keepRefused } from '../../ledger/evidence/refused-evidence.ts'
import { ledgerOf } from '../../ledger/ledger.ts'
import type { HttpServer } from '../../platform/http.ts'
import type { Counter, Histogram } from '../../platform/metrics.ts'
import { Batchers } from '../../platform/postgres/batchers.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { applyEvidenceBatch, type OutcomesDeps, type PayoutEvidence, withoutTexts } from './outcomes.ts'

export type CallbackEndpointDeps = OutcomesDeps & {
  /** Per merchant: parses and verifies the raw query string of a callback under every key of its accounts. */
  readers: ReadonlyMap<string, CallbackReader<Vouched<OrderReport>>>
  clock: Clock
  kept: Pick<KeptCallbacks, 'keep' | 'takeUp'>
  answered: Counter<'merchant' | 'answer'>
  took: Histogram
}

export const callbackPath = (merchantId: string): string =>
  `/callbacks/payout/${encodeURIComponent(merchantId)}`

/** The callback door of payouts, which tells how long callbacks wait: dispatch makes room for them. */
export class CallbackEndpoint {
  readonly #deps: CallbackEndpointDeps
  readonly #batches: Batchers<PayoutEvidence, undefined>
  #take: ReturnType<typeof receiveCallbacks> = async () => false
  #slowestMs = new Map<string, number>()

  constructor(deps: CallbackEndpointDeps) {
    this.#deps = deps
    this.#batches = new Batchers(
      { size: 500, waitMs: 4, lanes: 2, bare: withoutTexts },
      (evidence, merchantId) =>
        applyEvidenceBatch(evidence, { ...deps, ledger: ledgerOf(deps.ledger, merchantId) }),
    )
  }

  routes(server: HttpServer): void {
    const { readers, answered } = this.#deps
    const store = (merchantId: string, vouched: Vouched<OrderReport>) => this.#store(merchantId, vouched)
    const keep = (callback: UnverifiedCallback) => this.#keep(callback)
    const url = '/callbacks/payout/:merchantId'
    this.#take = receiveCallbacks(server, { url, readers, answered, store, keep })
  }

  /** Takes up some of what was kept for merchants that are in the settings again; returns how many ms to wait. */
  takeUpKept(): Promise<number> {
    const { kept, readers } = this.#deps
    return kept.takeUp([...readers.keys()], this.#take)
  }

  async #keep(callback: UnverifiedCallback): Promise<Keeping> {
    try {
      return await this.#deps.kept.keep(callback)
    } catch (error) {
      const { merchantId, orderNo } = callback
      this.#deps.log.error({ err: error, merchantId, orderNo }, 'callback not kept')
      return 'not-stored'
    }
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
      this.#slowestMs.set(merchantId, Math.max(this.#slowestMs.get(merchantId) ?? 0, Math.round(tookMs)))
      this.#deps.took.observe(tookMs / 1000)
    }
  }

  /** By merchant, the longest that a callback of theirs waited for its commit since this was last called, in ms. */
  slowestMs(): ReadonlyMap<string, number> {
    const slowest = this.#slowestMs
    this.#slowestMs = new Map()
    return slowest
  }

  drain(): Promise<void> {
    return this.#batches.drain()
  }
}
