import type { PayinCallback } from '../domain/payin/answers.ts'
import type { Vouched } from '../gateway/callbacks/callback.ts'
import { type CallbackReader, type Keeping, receiveCallbacks } from '../gateway/callbacks/callback-route.ts'
import type { KeptCallbacks, UnverifiedCallback } from '../ledger/callbacks/kept-callbacks.ts'
import { keepRefused } from '../ledger/evidence/refused-evidence.ts'
import { ledgerOf } from '../ledger/ledger.ts'
import type { HttpServer } from '../platform/http.ts'
import type { Logger } from '../platform/log.ts'
import type { Counter } from '../platform/metrics.ts'
import { Batchers } from '../platform/postgres/batchers.ts'
import {
  applyPayinEvidenceBatch,
  type PayinEvidence,
  type PayinOutcomesDeps,
  withoutTexts,
} from './outcomes.ts'

export type PayinCallbackEndpointDeps = PayinOutcomesDeps & {
  /** Per merchant: parses and verifies the raw query string of a callback. */
  readers: ReadonlyMap<string, CallbackReader<Vouched<PayinCallback>>>
  log: Logger
  kept: Pick<KeptCallbacks, 'keep' | 'takeUp'>
  answered: Counter<'merchant' | 'answer'>
}

export const payinCallbackPath = (merchantId: string): string =>
  `/callbacks/payin/${encodeURIComponent(merchantId)}`

/** The callback door of payins. */
export class PayinCallbackEndpoint {
  readonly #deps: PayinCallbackEndpointDeps
  readonly #batches: Batchers<PayinEvidence, undefined>
  #take: ReturnType<typeof receiveCallbacks> = async () => false

  constructor(deps: PayinCallbackEndpointDeps) {
    this.#deps = deps
    this.#batches = new Batchers(
      { size: 500, waitMs: 4, lanes: 1, bare: withoutTexts },
      (evidence, merchantId) =>
        applyPayinEvidenceBatch(evidence, { ...deps, ledger: ledgerOf(deps.ledger, merchantId) }),
    )
  }

  routes(server: HttpServer): void {
    const { readers, answered } = this.#deps
    const store = (merchantId: string, vouched: Vouched<PayinCallback>) => this.#store(merchantId, vouched)
    const keep = (callback: UnverifiedCallback) => this.#keep(callback)
    const url = '/callbacks/payin/:merchantId'
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

  async #store(merchantId: string, { report, accountIds }: Vouched<PayinCallback>): Promise<boolean> {
    try {
      await this.#batches.add(merchantId, {
        merchantId,
        payinId: report.mchOrderNo,
        source: 'CALLBACK',
        report,
        accountIds,
      })
      return true
    } catch (error) {
      const orderNo = report.mchOrderNo
      this.#deps.log.error({ err: error, merchantId, payinId: orderNo }, 'callback not stored')
      await keepRefused(error, { merchantId, payoutId: null, orderNo, source: 'CALLBACK' }, this.#deps)
      return false
    }
  }

  drain(): Promise<void> {
    return this.#batches.drain()
  }
}
