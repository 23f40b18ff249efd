import { accountWith } from '../gateway/accounts.ts'
import type { PositiveControl } from '../gateway/positive-control.ts'
import { fencedMerchants, storeDecisions } from '../ledger/ledger.ts'
import { forgetLost, LOST_EVERY_MS, LOST_SOON_MS, takeLost } from '../ledger/lost-callbacks.ts'
import { keepRefused } from '../ledger/refused-evidence.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import type { QueryAnswer } from '../payout/answers.ts'
import type { Instant } from '../payout/instant.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { become, change, type Timetable } from '../payout/transition.ts'
import { Batchers } from '../platform/batchers.ts'
import type { Transaction } from '../platform/postgres.ts'
import { SharedSlots } from '../platform/shared-slots.ts'
import { askingAbout } from './control.ts'
import { bare, type Heard, type SettlementDeps, settleHeard } from './settlement.ts'
import { lockTimers, lockToAsk } from './sql/due.ts'

/** How one gateway account of a merchant is asked about an order. */
export type Asker = {
  accountId: string
  table: Timetable
  settingsHash: string
  query: (mchOrderNo: string) => Promise<QueryAnswer>
  /** The longest that one query takes. */
  timeoutMs: number
}

export type PollerDeps = SettlementDeps & {
  /** By merchant: the account in its settings, and former ones behind it. */
  askers: ReadonlyMap<string, readonly [Asker, ...Asker[]]>
  control: Pick<PositiveControl, 'found' | 'holds'>
}

/** Queries under way at once, in one process. */
const MOST_QUERIES = 64
/** Payouts of one merchant that time moves in one turn. */
const TIMERS_OF_EACH = 50
/** Time alone moves payouts of a merchant that is not in the settings. */
const NOBODY_TO_ASK: Timetable = {
  queryAfterMs: [60_000],
  graceMs: 0,
  confirmations: 1,
  resendWhenAbsent: false,
}
/** When to look again at payouts of a merchant that is fenced. */
const LATER_MS = 60_000
const IDLE_MS = 100

/**
 * Looks after payouts whose time has come: lets scheduled ones go, notices ended leases and deadlines, and
 * asks the gateway about what nobody called back about. What time alone moves waits for no query, and no merchant for
 * the queries of another.
 */
export class Poller {
  readonly #deps: PollerDeps
  readonly #slots: SharedSlots
  readonly #heard: Batchers<Heard, undefined>

  constructor(deps: PollerDeps) {
    this.#deps = deps
    this.#slots = new SharedSlots(MOST_QUERIES, deps.askers.keys(), deps.log)
    this.#heard = new Batchers({ size: 200, waitMs: 5, lanes: 1, bare }, (heard) => settleHeard(heard, deps))
  }

  /** One turn of the loop; returns how many ms to wait before the next. */
  async turn(): Promise<number> {
    const moved = await this.#takeDue((tx) => tx.run(lockTimers, { ofEach: TIMERS_OF_EACH }))
    const asked = await this.#slots.offer((rooms) =>
      this.#takeDue((tx) =>
        tx.run(lockToAsk, { merchantIds: [...rooms.keys()], limits: [...rooms.values()] }),
      ),
    )
    return moved + asked > 0 ? 0 : IDLE_MS
  }

  /**
   * Asks once about payouts of which a callback was lost while their merchant was not in the settings, ended or not;
   * returns how many ms to wait before the next turn.
   */
  async askAboutLost(): Promise<number> {
    const { ledger } = this.#deps
    const lost = await this.#slots.offer(async (rooms) => {
      const lost = await takeLost('payout', rooms, ledger.db)
      for (const each of lost) {
        const asker = this.#askerFor(each)
        if (!asker) continue
        this.#slots.run(each.merchantId, async () => {
          if (await this.#ask(each, asker, each.askedAt)) await forgetLost('payout', each, ledger.db)
        })
      }
      return lost
    })
    return lost.length > 0 ? LOST_SOON_MS : LOST_EVERY_MS
  }

  async drain(): Promise<void> {
    await this.#slots.drain()
    await this.#heard.drain()
  }

  /** Returns how many payouts it changed, or asks about. */
  async #takeDue(find: (tx: Transaction) => Promise<Payout[]>): Promise<number> {
    const { ledger, judge } = this.#deps
    const { taken, toAsk, now } = await ledger.db.transaction('take due payouts', async (tx) => {
      const due = await find(tx)
      const fenced = due.length > 0 ? await fencedMerchants(tx) : new Set()
      const toAsk: Question[] = []
      const decisions: Decision[] = []
      for (const payout of due) {
        // It may have been sent all the same, so that it must not expire.
        if (payout.attempt === 0 && fenced.has(payout.merchantId)) {
          decisions.push(postpone(payout, tx.now + LATER_MS))
          continue
        }
        const asker = this.#askerFor(payout)
        const decision = judge.whenDue(payout, asker?.table ?? NOBODY_TO_ASK, tx.now)
        if (!('ask' in decision)) decisions.push(decision)
        else if (asker) {
          toAsk.push({ payout, asker })
          // While it is being asked about, nobody else does: two queries, the second for the positive control.
          decisions.push(postpone({ ...payout, askedAt: tx.now }, tx.now + 2 * asker.timeoutMs))
        } else decisions.push(await this.#withoutAsker(tx, payout))
      }
      await storeDecisions(tx, ledger, decisions)
      return { taken: decisions.filter((each) => !('nothing' in each)).length, toAsk, now: tx.now }
    })
    for (const { payout, asker } of toAsk) {
      this.#slots.run(payout.merchantId, async () => {
        await this.#ask(payout, asker, now)
      })
    }
    return taken
  }

  /** Of the account that has the payout; undefined: it is not in these settings. */
  #askerFor({ merchantId, accountId }: Pick<Payout, 'merchantId' | 'accountId'>): Asker | undefined {
    const askers = this.#deps.askers.get(merchantId)
    return askers && accountWith(askers, accountId)
  }

  /**
   * Nobody can be asked. That is a person's to see at once where the settings in force lack the account; processes
   * whose settings are not in force leave the payout to those that have them. Of a merchant that left the settings it is so
   * at the deadline.
   */
  async #withoutAsker(tx: Transaction, payout: Payout): Promise<Decision> {
    const [ours] = this.#deps.askers.get(payout.merchantId) ?? []
    if (!ours) return postpone(payout, tx.now + LATER_MS)
    const [inForce] = await tx.run(settingsInForce, payout)
    if (inForce?.settingsHash !== ours.settingsHash) return { nothing: true }
    const note = `the settings have no gateway account ${payout.accountId}, where the payout may be: add it to formerAccounts`
    return change(payout, become(payout, 'review', { reason: 'account-unknown' }), 'CLOCK', { note })
  }

  /** Resolves to whether the gateway told what it knows of the order, and that is stored. */
  async #ask(
    { merchantId, payoutId, orderNo }: Pick<Payout, 'merchantId' | 'payoutId' | 'orderNo'>,
    asker: Asker,
    askedAt: Instant,
  ): Promise<boolean> {
    if (orderNo === null) return false
    try {
      const answer = await asker.query(orderNo)
      const positiveControl = await this.#control(merchantId, orderNo, asker, answer)
      const { accountId, table } = asker
      const asked = { accountId, table, askedAt, positiveControl }
      await this.#heard.add(merchantId, {
        merchantId,
        mchOrderNo: orderNo,
        source: 'QUERY',
        answer,
        ...asked,
      })
      return answer.kind !== 'unknown'
    } catch (error) {
      this.#deps.log.error({ err: error, merchantId, payoutId }, 'query result not stored, will ask again')
      await keepRefused(error, { merchantId, payoutId, orderNo, source: 'QUERY' }, this.#deps)
      return false
    }
  }

  async #control(
    merchantId: string,
    orderNo: string,
    { accountId, settingsHash, query }: Asker,
    answer: QueryAnswer,
  ): Promise<boolean> {
    const { control, ledger } = this.#deps
    if (answer.kind === 'found') control.found(settingsHash, orderNo)
    if (answer.kind !== 'not-found') return false
    return control.holds(settingsHash, askingAbout({ merchantId, accountId }, query, ledger.db))
  }
}

/** A payout, and the account to be asked about it. */
type Question = { payout: Payout; asker: Asker }

const postpone = (payout: Payout, dueAt: Instant): Decision => ({
  change: { before: payout, after: { ...payout, dueAt }, source: 'CLOCK', exchange: null },
})
