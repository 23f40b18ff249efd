import { accountWith } from '../gateway/accounts.ts'
import type { PayinQueryAnswer } from '../gateway/payin-answers.ts'
import type { PositiveControl } from '../gateway/positive-control.ts'
import type { Instant } from '../payout/instant.ts'
import type { Timetable } from '../payout/transition.ts'
import { Batchers } from '../platform/batchers.ts'
import type { Logger } from '../platform/log.ts'
import type { Transaction } from '../platform/postgres.ts'
import { SharedSlots } from '../platform/shared-slots.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { bare, type Heard, type SettlementDeps, settleHeard } from './settlement.ts'
import { someKnownPayin } from './sql/control.ts'
import { lockEndedLeases, lockToAsk } from './sql/due.ts'
import { storePayins } from './store.ts'
import { change } from './transition.ts'
import { whenDue } from './when-due.ts'

/** How one gateway account of a merchant is asked about a payin, without having it call back. */
export type PayinAsker = {
  accountId: string
  table: Timetable
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
/** When to look again at payins whose account is not in the settings. */
const STRANGER_MS = 60_000
/** Creations whose lease ended that one turn takes. */
const MOST_LEASES = 100
const IDLE_MS = 500

/**
 * Looks after payins whose time has come: notices ended leases, and asks about what nobody called back about. An ended
 * lease waits for no query, and no merchant for the queries of another.
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
    const moved = await this.#takeDue((tx) => tx.run(lockEndedLeases, { limit: MOST_LEASES }))
    const asked = await this.#slots.offer((rooms) =>
      this.#takeDue((tx) =>
        tx.run(lockToAsk, { merchantIds: [...rooms.keys()], limits: [...rooms.values()] }),
      ),
    )
    return moved + asked > 0 ? 0 : IDLE_MS
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
      const decisions = due.map((payin): PayinDecision => {
        const asker = this.#askerFor(payin)
        if (!asker) return postpone(payin, tx.now + STRANGER_MS)
        const decision = whenDue(payin, asker.table, tx.now)
        if (!('ask' in decision)) return decision
        toAsk.push({ payin, asker })
        // While it is being asked about, nobody else does: two queries, the second for the positive control.
        return postpone({ ...payin, askedAt: tx.now }, tx.now + 2 * asker.timeoutMs)
      })
      await storePayins(tx, ledger, decisions)
      return { taken: decisions.filter((each) => !('nothing' in each)).length, toAsk, now: tx.now }
    })
    for (const question of toAsk) this.#slots.run(question.payin.merchantId, () => this.#ask(question, now))
    return taken
  }

  /** Of the account that has the payin; undefined: it is not in these settings. */
  #askerFor({ merchantId, accountId }: Payin): PayinAsker | undefined {
    const askers = this.#deps.askers.get(merchantId)
    return askers && accountWith(askers, accountId)
  }

  async #ask({ payin, asker }: Question, askedAt: Instant): Promise<void> {
    const { merchantId, payinId } = payin
    const { table } = asker
    try {
      const answer = await asker.query(payinId)
      const positiveControl = await this.#holds(payin, asker, answer)
      await this.#heard.add(merchantId, {
        merchantId,
        payinId,
        source: 'QUERY',
        table,
        answer,
        askedAt,
        positiveControl,
      })
    } catch (error) {
      this.#deps.log.error({ err: error, merchantId, payinId }, 'query result not stored, will ask again')
    }
  }

  async #holds(
    { merchantId, payinId }: Payin,
    { accountId, query }: PayinAsker,
    answer: PayinQueryAnswer,
  ): Promise<boolean> {
    const { control, ledger } = this.#deps
    if (answer.kind === 'known') control.found(accountId, payinId)
    if (answer.kind !== 'not-found') return false
    return control.holds(accountId, {
      known: async () => (await ledger.db.run(someKnownPayin, { merchantId, accountId }))[0]?.payinId ?? null,
      finds: async (known) => (await query(known)).kind === 'known',
    })
  }
}

/** A payin, and the account to be asked about it. */
type Question = { payin: Payin; asker: PayinAsker }

const postpone = (payin: Payin, dueAt: Instant): PayinDecision =>
  change(payin, { ...payin, dueAt }, 'CLOCK', null)
