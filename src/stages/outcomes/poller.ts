import type { QueryAnswer } from '../../domain/answers.ts'
import type { Instant } from '../../domain/instant.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { become, change, type QueryPolicy } from '../../domain/payout/transition.ts'
import { accountWith } from '../../gateway/accounts.ts'
import type { PresenceCheck } from '../../gateway/presence-check.ts'
import { LostCallbacks, type Told } from '../../ledger/callbacks/lost-callbacks.ts'
import { DueBatches, soon } from '../../ledger/due-batches.ts'
import { keepRefused } from '../../ledger/evidence/refused-evidence.ts'
import { fencedMerchants, keyOf, ledgerOf, type PayoutKey, storeDecisions } from '../../ledger/ledger.ts'
import { settingsInForce } from '../../ledger/sql/settings-in-force.ts'
import { Batchers } from '../../platform/postgres/batchers.ts'
import { atMost, type Database, type Transaction } from '../../platform/postgres/postgres.ts'
import { SharedSlots } from '../../platform/running/shared-slots.ts'
import { askingAbout } from './known-order.ts'
import { applyEvidenceBatch, type OutcomesDeps, type PayoutEvidence, withoutTexts } from './outcomes.ts'
import { dueQuestions, dueTimers, lockDue } from './sql/due.ts'

/** How one gateway account of a merchant is asked about an order. */
export type Querier = {
  accountId: string
  queryPolicy: QueryPolicy
  settingsHash: string
  query: (mchOrderNo: string) => Promise<QueryAnswer>
  /** The longest that one query takes. */
  timeoutMs: number
}

export type PollerDeps = OutcomesDeps & {
  /** By merchant: the account in its settings, and former ones behind it. */
  queriers: ReadonlyMap<string, readonly [Querier, ...Querier[]]>
  presenceCheck: Pick<PresenceCheck, 'found' | 'holds'>
}

/** Queries under way at once, in one process. */
const MOST_QUERIES = 64
/** Payouts of one merchant that time moves in one turn. */
const TIMERS_OF_EACH = 50
/** Merchants whose payouts are taken at once: each uses a connection. */
const MOST_AT_ONCE = 3
/** Time alone moves payouts of a merchant that is not in the settings. */
const NOBODY_TO_ASK: QueryPolicy = {
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
 * another.
 */
export class Poller {
  readonly #deps: PollerDeps
  readonly #slots: SharedSlots
  readonly #heard: Batchers<PayoutEvidence, undefined>
  readonly #due: DueBatches<Due, Taken>
  readonly #taking: Database
  readonly #lost: LostCallbacks

  constructor(deps: PollerDeps) {
    this.#deps = deps
    this.#slots = new SharedSlots(MOST_QUERIES, deps.queriers.keys(), deps.log)
    this.#heard = new Batchers(
      { size: 200, waitMs: 5, lanes: 1, bare: withoutTexts },
      (evidence, merchantId) =>
        applyEvidenceBatch(evidence, { ...deps, ledger: ledgerOf(deps.ledger, merchantId) }),
    )
    this.#taking = atMost(MOST_AT_ONCE, deps.ledger.db)
    this.#due = new DueBatches<Due, Taken>((due) => this.#take(due), {
      keyOf,
      about: ({ merchantId, payoutId }) => ({ merchantId, payoutId, orderNo: null }),
      ledger: deps.ledger,
      log: deps.log,
    })
    this.#lost = new LostCallbacks('payout', { ...deps, slots: this.#slots })
  }

  /** One turn of the loop; returns how many ms to wait before the next. */
  async turn(): Promise<number> {
    const taken = [...(await this.#moveTimers()), ...(await this.#askAboutDue())]
    return taken.some((each) => each && !('nothing' in each.decision)) ? 0 : IDLE_MS
  }

  /**
   * Asks about payouts of which a callback was lost while their merchant was not in the settings, ended or not;
   * returns how many ms to wait before the next turn.
   */
  askAboutLost(sign: () => void): Promise<number> {
    return this.#lost.turn((payout) => {
      const querier = this.#askerFor(payout)
      if (!querier) return undefined
      return {
        queryPolicy: querier.queryPolicy,
        ask: () => this.#ask({ payout, querier, askedAt: payout.askedAt }),
      }
    }, sign)
  }

  async drain(): Promise<void> {
    await this.#due.drain()
    await this.#slots.drain()
    await this.#heard.drain()
  }

  async #moveTimers(): Promise<(Taken | undefined)[]> {
    const ofEach = this.#due.lookFor(TIMERS_OF_EACH)
    const found = await this.#deps.ledger.db.run(dueTimers, { ofEach })
    const timers = found.map((key) => ({ ...key, mayAsk: false }))
    return soon(this.#due.free(timers, () => TIMERS_OF_EACH).map((timer) => this.#due.take(timer)))
  }

  #askAboutDue(): Promise<(Taken | undefined)[]> {
    return this.#due.takeInSlots(
      this.#slots,
      async (limits) => {
        const found = await this.#deps.ledger.db.run(dueQuestions, limits)
        return found.map((key) => ({ ...key, mayAsk: true }))
      },
      async ({ question }) => question && this.#ask(question),
    )
  }

  /** Of one merchant. What is no longer due comes to nothing. */
  async #take(due: readonly Due[]): Promise<Taken[]> {
    const { ledger } = this.#deps
    const [{ merchantId }] = due as [Due]
    const payoutIds = due.map(({ payoutId }) => payoutId)
    return this.#taking.transaction('take due payouts', async (tx) => {
      const locked = await tx.run(lockDue, { merchantId, payoutIds })
      const isFenced = locked.length > 0 && (await fencedMerchants(tx)).has(merchantId)
      const payouts = new Map(locked.map((payout) => [payout.payoutId, payout]))
      const taken: Taken[] = []
      for (const { payoutId, mayAsk } of due) {
        const payout = payouts.get(payoutId)
        taken.push(payout ? await this.#decide(tx, payout, { isFenced, mayAsk }) : NOTHING)
      }
      await storeDecisions(
        tx,
        ledger,
        taken.map(({ decision }) => decision),
      )
      return taken
    })
  }

  async #decide(
    tx: Transaction,
    payout: Payout,
    { isFenced, mayAsk }: { isFenced: boolean; mayAsk: boolean },
  ): Promise<Taken> {
    // It may have been sent all the same, so that it must not expire.
    if (isFenced && mustWait(payout)) return { decision: postpone(payout, tx.now + LATER_MS) }
    const querier = this.#askerFor(payout)
    const decision = this.#deps.decisions.onTimer(payout, querier?.queryPolicy ?? NOBODY_TO_ASK, tx.now)
    if (!('ask' in decision)) return { decision }
    if (!querier) return { decision: await this.#withoutAsker(tx, payout) }
    if (!mayAsk) return NOTHING
    // While it is being asked about, nobody else does: two queries, the second for the positive control.
    const asked = postpone({ ...payout, askedAt: tx.now }, tx.now + 2 * querier.timeoutMs)
    return { decision: asked, question: { payout, querier, askedAt: tx.now } }
  }

  /** Of the account that has the payout; undefined: it is not in these settings. */
  #askerFor({ merchantId, accountId }: Pick<Payout, 'merchantId' | 'accountId'>): Querier | undefined {
    const queriers = this.#deps.queriers.get(merchantId)
    return queriers && accountWith(queriers, accountId)
  }

  /**
   * Nobody can be asked. That is a person's to see at once where the settings in force lack the account; processes
   * whose settings are not in force leave the payout to those that have them. Of a merchant that left the settings it is so
   * at the deadline.
   */
  async #withoutAsker(tx: Transaction, payout: Payout): Promise<Decision> {
    const [ours] = this.#deps.queriers.get(payout.merchantId) ?? []
    if (!ours) return postpone(payout, tx.now + LATER_MS)
    const [inForce] = await tx.run(settingsInForce, { merchantIds: [payout.merchantId] })
    if (inForce?.settingsHash !== ours.settingsHash) return { nothing: true }
    const note = `the settings have no gateway account ${payout.accountId}, where the payout may be: add it to formerAccounts`
    return change(payout, become(payout, 'review', { reason: 'account-unknown' }), 'CLOCK', { note })
  }

  /** Resolves to what the gateway told of the order, once that is stored. */
  async #ask({ payout: { merchantId, payoutId, orderNo }, querier, askedAt }: Question): Promise<Told> {
    if (orderNo === null) return 'nothing'
    try {
      const answer = await querier.query(orderNo)
      const isPresenceChecked = await this.#control(merchantId, orderNo, querier, answer)
      const { accountId, queryPolicy } = querier
      const [{ settingsHash }] = this.#deps.queriers.get(merchantId) as readonly [Querier]
      const asked = { accountId, queryPolicy, settingsHash, askedAt, isPresenceChecked }
      await this.#heard.add(merchantId, {
        merchantId,
        mchOrderNo: orderNo,
        source: 'QUERY',
        answer,
        ...asked,
      })
      return TOLD[answer.kind]
    } catch (error) {
      this.#deps.log.error({ err: error, merchantId, payoutId }, 'query result not stored, will ask again')
      await keepRefused(error, { merchantId, payoutId, orderNo, source: 'QUERY' }, this.#deps)
      return 'nothing'
    }
  }

  async #control(
    merchantId: string,
    orderNo: string,
    { accountId, settingsHash, query }: Querier,
    answer: QueryAnswer,
  ): Promise<boolean> {
    const { presenceCheck, ledger } = this.#deps
    if (answer.kind === 'found') presenceCheck.found(settingsHash, orderNo)
    if (answer.kind !== 'not-found') return false
    return presenceCheck.holds(settingsHash, askingAbout({ merchantId, accountId }, query, ledger.db))
  }
}

const TOLD = { found: 'order', 'not-found': 'no-order', unknown: 'nothing' } as const

/** What was never sent, as far as a fenced ledger knows, or is to be cancelled, is the recovery's to decide about. */
const mustWait = ({ attempt, state, cancelRequest }: Payout): boolean =>
  attempt === 0 || (cancelRequest !== null && (state === 'held' || state === 'queued'))

/** `mayAsk`: a slot is held for the question. */
type Due = PayoutKey & { mayAsk: boolean }

/** What came of a payout that was due, and what is to be asked about it. */
type Taken = { decision: Decision; question?: Question }

const NOTHING: Taken = { decision: { nothing: true } }

/** A payout, and the account to be asked about it. */
type Question = {
  payout: Pick<Payout, 'merchantId' | 'payoutId' | 'orderNo'>
  querier: Querier
  askedAt: Instant
}

const postpone = (payout: Payout, dueAt: Instant): Decision => ({
  change: { before: payout, after: { ...payout, dueAt }, source: 'CLOCK', exchange: null },
})
