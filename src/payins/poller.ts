import { accountWith } from '../gateway/accounts.ts'
import type { PayinQueryAnswer } from '../gateway/payin-answers.ts'
import type { PositiveControl } from '../gateway/positive-control.ts'
import { forgetLost, LOST_EVERY_MS, LOST_SOON_MS, takeLost } from '../ledger/lost-callbacks.ts'
import { keepRefused } from '../ledger/refused-evidence.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import type { Instant } from '../payout/instant.ts'
import type { Timetable } from '../payout/transition.ts'
import { Batchers } from '../platform/batchers.ts'
import type { Logger } from '../platform/log.ts'
import type { Transaction } from '../platform/postgres.ts'
import { SharedSlots } from '../platform/shared-slots.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { bare, type Heard, type SettlementDeps, settleHeard } from './settlement.ts'
import { someKnownPayin } from './sql/control.ts'
import { lockDueOfOthers, lockEndedLeases, lockToAsk } from './sql/due.ts'
import { type PayinKey, storePayins } from './store.ts'
import { change, isOver, toReview, waits } from './transition.ts'
import { whenDue } from './when-due.ts'

/** How one gateway account of a merchant is asked about a payin, without having it call back. */
export type PayinAsker = {
  accountId: string
  table: Timetable
  settingsHash: string
  query: (mchOrderNo: string) => Promise<PayinQueryAnswer>
  /** The longest that one query takes. */
  timeoutMs: number
}

export type PayinPollerDeps = SettlementDeps & {
  /** By merchant: the account in its settings, and former ones behind it. */
  askers: ReadonlyMap<string, readonly [PayinAsker, ...PayinAsker[]]>
  control: PositiveControl
  log: Logger
}

/** Queries under way at once, in one process. */
const MOST_QUERIES = 16
/** When to look again at a payin of a merchant that is not in the settings. */
const LATER_MS = 60_000
/** The same once its time is over, or it has ended. */
const ENDED_LATER_MS = 600_000
/** What one turn takes of creations whose lease has ended, and of each merchant that is not in the settings. */
const MOST_AT_ONCE = 100
/** Time alone moves payins that nobody can be asked about. */
const NOBODY_TO_ASK: Timetable = {
  queryAfterMs: [LATER_MS],
  graceMs: 0,
  confirmations: 1,
  resendWhenAbsent: false,
}
const IDLE_MS = 500

/**
 * Looks after payins whose time has come: notices ended leases, asks about what nobody called back about, and gives to a
 * person what nobody can be asked about. An ended lease waits for no query, and no merchant for the queries of another.
 */
export class PayinPoller {
  readonly #deps: PayinPollerDeps
  readonly #slots: SharedSlots
  readonly #heard: Batchers<Heard, undefined>

  constructor(deps: PayinPollerDeps) {
    this.#deps = deps
    this.#slots = new SharedSlots(MOST_QUERIES, deps.askers.keys(), deps.log)
    this.#heard = new Batchers({ size: 200, waitMs: 5, lanes: 1, bare }, (heard) => settleHeard(heard, deps))
  }

  /** One turn of the loop; returns how many ms to wait before the next. */
  async turn(): Promise<number> {
    const merchantIds = [...this.#deps.askers.keys()]
    const ended = await this.#takeDue((tx) => tx.run(lockEndedLeases, { limit: MOST_AT_ONCE }))
    const others = await this.#takeDue((tx) => tx.run(lockDueOfOthers, { merchantIds, ofEach: MOST_AT_ONCE }))
    const asked = await this.#slots.offer((rooms) =>
      this.#takeDue((tx) =>
        tx.run(lockToAsk, { merchantIds: [...rooms.keys()], limits: [...rooms.values()] }),
      ),
    )
    return ended + others + asked > 0 ? 0 : IDLE_MS
  }

  /**
   * Asks once about payins of which a callback was lost while their merchant was not in the settings, ended or not;
   * returns how many ms to wait before the next turn.
   */
  async askAboutLost(): Promise<number> {
    const { ledger } = this.#deps
    const lost = await this.#slots.offer(async (rooms) => {
      const lost = await takeLost('payin', rooms, ledger.db)
      for (const each of lost) {
        const asker = this.#askerFor(each)
        if (!asker) continue
        const { merchantId, orderNo: payinId } = each
        this.#slots.run(merchantId, async () => {
          if (await this.#ask({ merchantId, payinId }, asker, each.askedAt))
            await forgetLost('payin', each, ledger.db)
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

  /** Returns how many payins it changed, or asks about. */
  async #takeDue(find: (tx: Transaction) => Promise<Payin[]>): Promise<number> {
    const { ledger } = this.#deps
    const { taken, toAsk, now } = await ledger.db.transaction('take due payins', async (tx) => {
      const due = await find(tx)
      const toAsk: Question[] = []
      const decisions: PayinDecision[] = []
      for (const payin of due) {
        const asker = this.#askerFor(payin)
        const decision = whenDue(payin, asker?.table ?? NOBODY_TO_ASK, tx.now)
        if (!('ask' in decision)) decisions.push(decision)
        else if (asker) {
          toAsk.push({ payin, asker })
          // While it is being asked about, nobody else does: two queries, the second for the positive control.
          decisions.push(postpone({ ...payin, askedAt: tx.now }, tx.now + 2 * asker.timeoutMs))
        } else decisions.push(await this.#withoutAsker(tx, payin))
      }
      await storePayins(tx, ledger, decisions)
      return { taken: decisions.filter((each) => !('nothing' in each)).length, toAsk, now: tx.now }
    })
    for (const { payin, asker } of toAsk) {
      this.#slots.run(payin.merchantId, async () => {
        await this.#ask(payin, asker, now)
      })
    }
    return taken
  }

  /** Of the account that has the payin; undefined: it is not in these settings. */
  #askerFor({ merchantId, accountId }: Pick<Payin, 'merchantId' | 'accountId'>): PayinAsker | undefined {
    const askers = this.#deps.askers.get(merchantId)
    return askers && accountWith(askers, accountId)
  }

  /**
   * Nobody can be asked, until the merchant or the account is back in the settings. That is a person's to see when the
   * payin's time is over, and the payin waits on; processes whose settings are not in force leave it to those that have them.
   */
  async #withoutAsker(tx: Transaction, payin: Payin): Promise<PayinDecision> {
    const { merchantId, accountId, expiresAt } = payin
    const [ours] = this.#deps.askers.get(merchantId) ?? []
    if (ours) {
      const [inForce] = await tx.run(settingsInForce, { merchantId })
      if (inForce?.settingsHash !== ours.settingsHash) return { nothing: true }
    }
    if (!waits(payin)) return postpone(payin, tx.now + ENDED_LATER_MS)
    if (!isOver(payin, tx.now)) return postpone(payin, Math.min(tx.now + LATER_MS, expiresAt))
    const note = ours
      ? `the settings have no gateway account ${accountId}, where the payin is: add it to formerAccounts`
      : `the settings have no merchant ${merchantId}: put it back`
    const after = { ...toReview(payin, 'account-unknown', tx.now), dueAt: tx.now + ENDED_LATER_MS }
    return change(payin, after, 'CLOCK', { note })
  }

  /** Resolves to whether the gateway told what it knows of the order, and that is stored. */
  async #ask({ merchantId, payinId }: PayinKey, asker: PayinAsker, askedAt: Instant): Promise<boolean> {
    const { table } = asker
    try {
      const answer = await asker.query(payinId)
      const positiveControl = await this.#holds({ merchantId, payinId }, asker, answer)
      await this.#heard.add(merchantId, {
        merchantId,
        payinId,
        source: 'QUERY',
        table,
        answer,
        askedAt,
        positiveControl,
      })
      return answer.kind === 'known' || answer.kind === 'not-found'
    } catch (error) {
      this.#deps.log.error({ err: error, merchantId, payinId }, 'query result not stored, will ask again')
      const about = { merchantId, payoutId: null, orderNo: payinId, source: 'QUERY' } as const
      await keepRefused(error, about, this.#deps)
      return false
    }
  }

  async #holds(
    { merchantId, payinId }: PayinKey,
    { accountId, settingsHash, query }: PayinAsker,
    answer: PayinQueryAnswer,
  ): Promise<boolean> {
    const { control, ledger } = this.#deps
    if (answer.kind === 'known') control.found(settingsHash, payinId)
    if (answer.kind !== 'not-found') return false
    return control.holds(settingsHash, {
      known: async () => (await ledger.db.run(someKnownPayin, { merchantId, accountId }))[0]?.payinId ?? null,
      finds: async (known) => (await query(known)).kind === 'known',
    })
  }
}

/** A payin, and the account to be asked about it. */
type Question = { payin: Payin; asker: PayinAsker }

const postpone = (payin: Payin, dueAt: Instant): PayinDecision =>
  change(payin, { ...payin, dueAt }, 'CLOCK', null)
