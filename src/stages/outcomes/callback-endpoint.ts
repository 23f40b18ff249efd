import type { Vouched } from '../../gateway/callbacks/callback.ts'
import {
  type CallbackKeeping,
  type CallbackReader,
  receiveCallbacks,
} from '../../gateway/callbacks/callback-route.ts'
import type { KeptCallbacks, UnverifiedCallback } from '../../ledger/callbacks/kept-callbacks.ts'
import type { CallbackKind } from '../../ledger/callbacks/sql/kept-callbacks.ts'
import { keepRefused } from '../../ledger/evidence/refused-evidence.ts'
import { type Ledger, ledgerOf } from '../../ledger/ledger.ts'
import type { HttpServer } from '../../platform/http.ts'
import type { Logger } from '../../platform/log.ts'
import type { Counter, Histogram } from '../../platform/metrics.ts'
import { Batchers } from '../../platform/postgres/batchers.ts'
import { isWithoutAnswer } from '../../platform/postgres/faults.ts'
import type { Clock } from '../../platform/running/clock.ts'

export type CallbackEndpointDeps<Report> = {
  /** By merchant: parses and verifies the raw query string of a callback under every key of its accounts. */
  readers: ReadonlyMap<string, CallbackReader<Vouched<Report>>>
  ledger: Ledger
  clock: Clock
  log: Logger
  kept: Pick<KeptCallbacks, 'keep' | 'takeUp'>
  answered: Counter<'merchant' | 'answer'>
  took: Histogram
}

/** What differs between callbacks about payouts and about payins. */
export type CalledBack<Report, Evidence> = {
  kind: CallbackKind
  evidenceOf: (merchantId: string, callback: Vouched<Report>) => Evidence
  apply: (evidence: readonly Evidence[], ledger: Ledger) => Promise<undefined[]>
  withoutTexts: (evidence: Evidence) => Evidence
  orderOf: (evidence: Evidence) => string
}

export const callbackPath = (kind: CallbackKind, merchantId: string): string =>
  `/callbacks/${kind}/${encodeURIComponent(merchantId)}`

/** Accepts callbacks, and measures how long they wait, because dispatch makes room for those of payouts. */
export class CallbackEndpoint<Report extends { mchOrderNo: string }, Evidence> {
  readonly #about: CalledBack<Report, Evidence>
  readonly #deps: CallbackEndpointDeps<Report>
  readonly #evidence: Batchers<Evidence, undefined>
  #take: ReturnType<typeof receiveCallbacks> = async () => false
  #slowestMs = new Map<string, number>()

  constructor(about: CalledBack<Report, Evidence>, deps: CallbackEndpointDeps<Report>) {
    this.#about = about
    this.#deps = deps
    this.#evidence = new Batchers(
      { size: 500, waitMs: 4, bare: about.withoutTexts, about: about.orderOf },
      (evidence, merchantId) => about.apply(evidence, ledgerOf(deps.ledger, merchantId)),
    )
  }

  routes(server: HttpServer): void {
    const { readers, answered } = this.#deps
    const store = (merchantId: string, callback: Vouched<Report>) => this.#store(merchantId, callback)
    const keep = (callback: UnverifiedCallback) => this.#keep(callback)
    const url = `/callbacks/${this.#about.kind}/:merchantId`
    this.#take = receiveCallbacks(server, { url, readers, answered, store, keep })
  }

  /** Handles some kept callbacks of merchants that are in the settings again; returns how many ms to wait. */
  takeUpKept(): Promise<number> {
    const { kept, readers } = this.#deps
    return kept.takeUp([...readers.keys()], this.#take)
  }

  async #keep(callback: UnverifiedCallback): Promise<CallbackKeeping> {
    try {
      return await this.#deps.kept.keep(callback)
    } catch (error) {
      const { merchantId, orderNo } = callback
      this.#deps.log.error({ err: error, merchantId, orderNo }, 'callback not kept')
      return 'not-stored'
    }
  }

  async #store(merchantId: string, callback: Vouched<Report>): Promise<boolean> {
    const began = this.#deps.clock.monotonic()
    try {
      await this.#evidence.add(merchantId, this.#about.evidenceOf(merchantId, callback))
      return true
    } catch (error) {
      const orderNo = callback.report.mchOrderNo
      if (!isWithoutAnswer(error))
        this.#deps.log.error({ err: error, merchantId, mchOrderNo: orderNo }, 'callback not stored')
      await keepRefused(error, { merchantId, payoutId: null, orderNo, source: 'CALLBACK' }, this.#deps)
      return false
    } finally {
      const tookMs = this.#deps.clock.monotonic() - began
      this.#slowestMs.set(merchantId, Math.max(this.#slowestMs.get(merchantId) ?? 0, Math.round(tookMs)))
      this.#deps.took.observe(tookMs / 1000)
    }
  }

  /** By merchant, the longest wait of a callback for its commit since the last call, in ms. */
  slowestMs(): ReadonlyMap<string, number> {
    const slowest = this.#slowestMs
    this.#slowestMs = new Map()
    return slowest
  }

  drain(): Promise<void> {
    return this.#evidence.drain()
  }
}
