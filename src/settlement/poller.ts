import type { PositiveControl } from '../gateway/positive-control.ts'
import { fencedMerchants, storeDecisions } from '../ledger/ledger.ts'
import type { QueryAnswer } from '../payout/answers.ts'
import type { Instant } from '../payout/instant.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { Batcher } from '../platform/batcher.ts'
import type { Logger } from '../platform/log.ts'
import { Slots } from '../platform/slots.ts'
import { askingAbout } from './control.ts'
import { type Heard, type SettlementDeps, settleHeard } from './settlement.ts'
import { lockDue } from './sql/due.ts'

/** How one merchant's gateway is asked about an order. */
export type Asker = {
  settingsHash: string
  query: (mchOrderNo: string) => Promise<QueryAnswer>
  /** The longest that one query takes. */
  timeoutMs: number
}

export type PollerDeps = SettlementDeps & {
  askers: ReadonlyMap<string, Asker>
  control: Pick<PositiveControl, 'found' | 'holds'>
  log: Logger
}

/** Queries under way at once, in one process. */
const MOST_QUERIES = 64
/** When to look again at payouts of a merchant that is not in the settings, or fenced. */
const LATER_MS = 60_000
const IDLE_MS = 100

/**
 * Looks after payouts whose time has come: lets scheduled ones go, notices ended leases and deadlines, and
 * asks the gateway about what nobody called back about.
 */
export class Poller {
  readonly #deps: PollerDeps
  readonly #slots = new Slots(MOST_QUERIES)
  readonly #heard: Batcher<Heard, undefined>

  constructor(deps: PollerDeps) {
    this.#deps = deps
    this.#heard = new Batcher({ size: 200, waitMs: 5, lanes: 1 }, (heard) => settleHeard(heard, deps))
  }

  /** One turn of the loop; returns how many ms to wait before the next. */
  async turn(): Promise<number> {
    const free = this.#slots.free
    if (free === 0) return IDLE_MS
    const { taken, toAsk, now } = await this.#takeDue(free)
    for (const payout of toAsk) this.#slots.run(() => this.#ask(payout, now))
    return taken === free ? 0 : IDLE_MS
  }

  async drain(): Promise<void> {
    await this.#slots.drain()
    await this.#heard.drain()
  }

  async #takeDue(limit: number): Promise<{ taken: number; toAsk: Payout[]; now: Instant }> {
    const { ledger, judge, tables, askers } = this.#deps
    return ledger.db.transaction('take due payouts', async (tx) => {
      const due = await tx.run(lockDue, { limit })
      const fenced = due.length > 0 ? await fencedMerchants(tx) : new Set()
      const toAsk: Payout[] = []
      const decisions = due.map((payout): Decision => {
        const table = tables.get(payout.merchantId)
        const asker = askers.get(payout.merchantId)
        if (!table || !asker) return postpone(payout, tx.now + LATER_MS)
        // It may have been sent all the same, so that it must not expire.
        if (payout.attempt === 0 && fenced.has(payout.merchantId)) return postpone(payout, tx.now + LATER_MS)
        const decision = judge.whenDue(payout, table, tx.now)
        if (!('ask' in decision)) return decision
        toAsk.push(payout)
        // While it is being asked about, nobody else does: two queries, the second for the positive control.
        return postpone(payout, tx.now + 2 * asker.timeoutMs)
      })
      await storeDecisions(tx, ledger, decisions)
      return { taken: due.length, toAsk, now: tx.now }
    })
  }

  async #ask({ merchantId, payoutId, orderNo }: Payout, askedAt: Instant): Promise<void> {
    const asker = this.#deps.askers.get(merchantId)
    if (!asker || orderNo === null) return
    try {
      const answer = await asker.query(orderNo)
      const positiveControl = await this.#control(merchantId, orderNo, asker, answer)
      const asked = { askedAt, positiveControl }
      await this.#heard.add({ merchantId, mchOrderNo: orderNo, source: 'QUERY', answer, ...asked })
    } catch (error) {
      this.#deps.log.error({ err: error, merchantId, payoutId }, 'query result not stored, will ask again')
    }
  }

  async #control(
    merchantId: string,
    orderNo: string,
    { settingsHash, query }: Asker,
    answer: QueryAnswer,
  ): Promise<boolean> {
    const { control, ledger } = this.#deps
    if (answer.kind === 'found') control.found(settingsHash, orderNo)
    if (answer.kind !== 'not-found') return false
    return control.holds(settingsHash, askingAbout(merchantId, query, ledger.db))
  }
}

const postpone = (payout: Payout, dueAt: Instant): Decision => ({
  change: { before: payout, after: { ...payout, dueAt }, source: 'CLOCK', exchange: null },
})
