import { keepRefused } from '../../ledger/evidence/refused-evidence.ts'
import { blame, TRIES_ALONE } from '../../platform/postgres/faults.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { type ClaimOptions, ClaimRefused } from './claim.ts'
import type { RecordDeps } from './record-answers.ts'

/** How long a payout is left alone after the database refused to claim it. */
const LEFT_ALONE_MS = 600_000
/** The most payouts of a merchant that are left alone at once. Each one refused beyond that frees the oldest. */
const MOST_LEFT_ALONE = 1_000

type Search = {
  /** The most that the next claim takes; null: as many as there is room for. */
  most: number | null
  /** How often the database refused the first payout alone, for no clear reason. */
  tries: number
  /** By payoutId: until when, by the monotonic clock. */
  readonly leftAlone: Map<string, number>
}

/**
 * Finds the payout that the database refuses to claim, by trying halves. It becomes an anomaly and is left alone for ten
 * minutes, so that the others of its merchant go on.
 */
export class RefusedClaims {
  readonly #deps: Pick<RecordDeps, 'ledger' | 'log'> & { clock: Clock }
  readonly #searches = new Map<string, Search>()

  constructor(deps: Pick<RecordDeps, 'ledger' | 'log'> & { clock: Clock }) {
    this.#deps = deps
  }

  /** What the next claim of a merchant may take, where there is room for `room`. */
  termsOf(merchantId: string, room: number): Pick<ClaimOptions, 'atMost' | 'among'> {
    const search = this.#searches.get(merchantId)
    if (!search) return { atMost: room }
    const now = this.#deps.clock.monotonic()
    for (const [payoutId, until] of search.leftAlone) if (until <= now) search.leftAlone.delete(payoutId)
    const atMost = Math.min(room, search.most ?? room)
    return { atMost, among: { allBut: [...search.leftAlone.keys()], onlyFirst: search.most === 1 } }
  }

  /** Call it after a claim that took `count`. */
  passed(merchantId: string, count: number): void {
    const search = this.#searches.get(merchantId)
    if (!search) return
    search.tries = 0
    if (search.most !== null) search.most = count < search.most ? null : search.most * 2
    if (search.leftAlone.size === 0 && search.most === null) this.#searches.delete(merchantId)
  }

  /** Call it after a claim that failed. True: try fewer at once. False: the merchant should rest first. */
  async failed(merchantId: string, error: unknown): Promise<boolean> {
    if (!(error instanceof ClaimRefused)) return false
    const [payoutId, ...others] = error.payoutIds
    if (payoutId === undefined) return false
    const search = this.#searches.get(merchantId) ?? { most: null, tries: 0, leftAlone: new Map() }
    this.#searches.set(merchantId, search)
    if (others.length > 0) {
      search.most = Math.floor(error.payoutIds.length / 2)
      return true
    }
    search.most = 1
    if (blame(error.cause) !== 'data' && ++search.tries < TRIES_ALONE) return false
    await this.#leaveAlone(merchantId, payoutId, search, error.cause)
    return false
  }

  async #leaveAlone(merchantId: string, payoutId: string, search: Search, error: unknown): Promise<void> {
    const { clock, log } = this.#deps
    log.error({ err: error, merchantId, payoutId, retryInMs: LEFT_ALONE_MS }, REFUSED)
    await keepRefused(error, { merchantId, payoutId, orderNo: null, source: 'CLOCK' }, this.#deps)
    search.tries = 0
    search.leftAlone.set(payoutId, clock.monotonic() + LEFT_ALONE_MS)
    const [first] = search.leftAlone.keys()
    if (search.leftAlone.size > MOST_LEFT_ALONE) search.leftAlone.delete(first as string)
  }
}

const REFUSED =
  'the database refuses to claim this payout, so payoutd does not send it and tries again later; other payouts are not affected'
