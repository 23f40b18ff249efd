import type { Instant } from '../domain/instant.ts'
import type { PayinQueryAnswer } from '../domain/payin/answers.ts'
import { onTimer } from '../domain/payin/on-timer.ts'
import type { Payin, PayinDecision } from '../domain/payin/payin.ts'
import { change, isLateLook, isOver, lateLookAt, toReview, waits } from '../domain/payin/transition.ts'
import type { QueryPolicy } from '../domain/payout/transition.ts'
import { accountWith } from '../gateway/accounts.ts'
import type { PresenceCheck } from '../gateway/presence-check.ts'
import { LostCallbacks, type Told } from '../ledger/callbacks/lost-callbacks.ts'
import { DueBatches, soon } from '../ledger/due-batches.ts'
import { keepRefused } from '../ledger/evidence/refused-evidence.ts'
import { ledgerOf } from '../ledger/ledger.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import type { Logger } from '../platform/log.ts'
import { Batchers } from '../platform/postgres/batchers.ts'
import { atMost, type Database, type Transaction } from '../platform/postgres/postgres.ts'
import { SharedSlots } from '../platform/running/shared-slots.ts'
import {
  applyPayinEvidenceBatch,
  type PayinEvidence,
  type PayinOutcomesDeps,
  withoutTexts,
} from './outcomes.ts'
import { dueOfOthers, dueQuestions, endedLeases, lockDue } from './sql/due.ts'
import { someKnownPayin } from './sql/known-order.ts'
import { keyOf, type PayinKey, storePayins } from './store.ts'

/** How one gateway account of a merchant is asked about a payin, without having it call back. */
export type PayinQuerier = {
  accountId: string
  queryPolicy: QueryPolicy
  settingsHash: string
  query: (mchOrderNo: string) => Promise<PayinQueryAnswer>
  /** The longest that one query takes. */
  timeoutMs: number
}

export type PayinPollerDeps = PayinOutcomesDeps & {
  /** By merchant: the account in its settings, and former ones behind it. */
  queriers: ReadonlyMap<string, readonly [PayinQuerier, ...PayinQuerier[]]>
  presenceCheck: PresenceCheck
  log: Logger
}

/** Queries under way at once, in one process. */
const MOST_QUERIES = 16
/** When to look again at a payin of a merchant that is not in the settings. */
const LATER_MS = 60_000
/** The same once its time is over, or it has ended. */
const ENDED_LATER_MS = 600_000
/** Of each merchant, what one turn takes of creations whose lease has ended, and where it is not in the settings of all that is due. */
const MOST_IN_A_TURN = 100
/** Merchants whose payins are taken at once: each uses a connection. */
const MOST_AT_ONCE = 2
/** Time alone moves payins that nobody can be asked about. */
const NOBODY_TO_ASK: QueryPolicy = {
  queryAfterMs: [LATER_MS],
  graceMs: 0,
  confirmations: 1,
  resendWhenAbsent: false,
}
const IDLE_MS = 500

/**
 * Looks after payins whose time has come: notices ended leases, asks about what nobody called back about, and gives to a
 * person what nobody can be asked about. An ended lease waits for no query, and no merchant for another.
 */
export class PayinPoller {
  readonly #deps: PayinPollerDeps
  readonly #slots: SharedSlots
  readonly #heard: Batchers<PayinEvidence, undefined>
  readonly #due: DueBatches<Due, Taken>
  readonly #taking: Database
  readonly #lost: LostCallbacks

  constructor(deps: PayinPollerDeps) {
    this.#deps = deps
    this.#slots = new SharedSlots(MOST_QUERIES, deps.queriers.keys(), deps.log)
    this.#heard = new Batchers(
      { size: 200, waitMs: 5, lanes: 1, bare: withoutTexts },
      (evidence, merchantId) =>
        applyPayinEvidenceBatch(evidence, { ...deps, ledger: ledgerOf(deps.ledger, merchantId) }),
    )
    this.#taking = atMost(MOST_AT_ONCE, deps.ledger.db)
    this.#due = new DueBatches<Due, Taken>((due) => this.#take(due), {
      keyOf,
      about: ({ merchantId, payinId }) => ({ merchantId, payoutId: null, orderNo: payinId }),
      ledger: deps.ledger,
      log: deps.log,
    })
    this.#lost = new LostCallbacks('payin', { ...deps, slots: this.#slots })
  }

  /** One turn of the loop; returns how many ms to wait before the next. */
  async turn(): Promise<number> {
    const taken = [...(await this.#takeWithoutAsking()), ...(await this.#askAboutDue())]
    return taken.some((each) => each && !('nothing' in each.decision)) ? 0 : IDLE_MS
  }

  /**
   * Asks about payins of which a callback was lost while their merchant was not in the settings, ended or not;
   * returns how many ms to wait before the next turn.
   */
  askAboutLost(sign: () => void): Promise<number> {
    return this.#lost.turn((lost) => {
      const querier = this.#askerFor(lost)
      if (!querier) return undefined
      const { merchantId, orderNo: payinId, askedAt } = lost
      return {
        queryPolicy: querier.queryPolicy,
        ask: () => this.#ask({ payin: { merchantId, payinId }, querier, askedAt }),
      }
    }, sign)
  }

  async drain(): Promise<void> {
    await this.#due.drain()
    await this.#slots.drain()
    await this.#heard.drain()
  }

  async #takeWithoutAsking(): Promise<(Taken | undefined)[]> {
    const { ledger, queriers } = this.#deps
    const most = this.#due.lookFor(MOST_IN_A_TURN)
    const ended = await ledger.db.run(endedLeases, { ofEach: most })
    const others = await ledger.db.run(dueOfOthers, { merchantIds: [...queriers.keys()], ofEach: most })
    const due = [...ended, ...others].map((key) => ({ ...key, mayAsk: false }))
    return soon(this.#due.free(due, () => MOST_IN_A_TURN).map((each) => this.#due.take(each)))
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
    const payinIds = due.map(({ payinId }) => payinId)
    return this.#taking.transaction('take due payins', async (tx) => {
      const locked = await tx.run(lockDue, { merchantId, payinIds })
      const payins = new Map(locked.map((payin) => [payin.payinId, payin]))
      const taken: Taken[] = []
      for (const { payinId, mayAsk } of due) {
        const payin = payins.get(payinId)
        taken.push(payin ? await this.#decide(tx, payin, mayAsk) : NOTHING)
      }
      await storePayins(
        tx,
        ledger,
        taken.map(({ decision }) => decision),
      )
      return taken
    })
  }

  async #decide(tx: Transaction, payin: Payin, mayAsk: boolean): Promise<Taken> {
    const querier = this.#askerFor(payin)
    const decision = onTimer(payin, querier?.queryPolicy ?? NOBODY_TO_ASK, tx.now)
    if (!('ask' in decision)) return { decision }
    if (!querier) return { decision: await this.#withoutAsker(tx, payin) }
    if (!mayAsk) return NOTHING
    // While it is being asked about, nobody else does: two queries, the second for the positive control.
    const asked = postpone({ ...payin, askedAt: tx.now }, tx.now + 2 * querier.timeoutMs)
    return { decision: asked, question: { payin, querier, askedAt: tx.now } }
  }

  /** Of the account that has the payin; undefined: it is not in these settings. */
  #askerFor({ merchantId, accountId }: Pick<Payin, 'merchantId' | 'accountId'>): PayinQuerier | undefined {
    const queriers = this.#deps.queriers.get(merchantId)
    return queriers && accountWith(queriers, accountId)
  }

  /**
   * Nobody can be asked, until the merchant or the account is back in the settings. That is a person's to see when the
   * payin's time is over, and the payin waits on; processes whose settings are not in force leave it to those that have them.
   */
  async #withoutAsker(tx: Transaction, payin: Payin): Promise<PayinDecision> {
    const { merchantId, accountId, expiresAt } = payin
    const [ours] = this.#deps.queriers.get(merchantId) ?? []
    if (ours) {
      const [inForce] = await tx.run(settingsInForce, { merchantIds: [merchantId] })
      if (inForce?.settingsHash !== ours.settingsHash) return { nothing: true }
    }
    if (!waits(payin))
      return postpone(payin, isLateLook(payin) ? lateLookAt(payin, tx.now) : tx.now + ENDED_LATER_MS)
    if (!isOver(payin, tx.now)) return postpone(payin, Math.min(tx.now + LATER_MS, expiresAt))
    const note = ours
      ? `the settings have no gateway account ${accountId}, where the payin is: add it to formerAccounts`
      : `the settings have no merchant ${merchantId}: put it back`
    const after = { ...toReview(payin, 'account-unknown', tx.now), dueAt: tx.now + ENDED_LATER_MS }
    return change(payin, after, 'CLOCK', { note })
  }

  /** Resolves to what the gateway told of the order, once that is stored. */
  async #ask({ payin: { merchantId, payinId }, querier, askedAt }: Question): Promise<Told> {
    const { queryPolicy } = querier
    const [{ settingsHash }] = this.#deps.queriers.get(merchantId) as readonly [PayinQuerier]
    try {
      const answer = await querier.query(payinId)
      const isPresenceChecked = await this.#holds({ merchantId, payinId }, querier, answer)
      await this.#heard.add(merchantId, {
        merchantId,
        payinId,
        source: 'QUERY',
        queryPolicy,
        settingsHash,
        answer,
        askedAt,
        isPresenceChecked,
      })
      return TOLD[answer.kind]
    } catch (error) {
      this.#deps.log.error({ err: error, merchantId, payinId }, 'query result not stored, will ask again')
      const about = { merchantId, payoutId: null, orderNo: payinId, source: 'QUERY' } as const
      await keepRefused(error, about, this.#deps)
      return 'nothing'
    }
  }

  async #holds(
    { merchantId, payinId }: PayinKey,
    { accountId, settingsHash, query }: PayinQuerier,
    answer: PayinQueryAnswer,
  ): Promise<boolean> {
    const { presenceCheck, ledger } = this.#deps
    if (answer.kind === 'known') presenceCheck.found(settingsHash, payinId)
    if (answer.kind !== 'not-found') return false
    return presenceCheck.holds(settingsHash, {
      known: async () => (await ledger.db.run(someKnownPayin, { merchantId, accountId }))[0]?.payinId ?? null,
      finds: async (known) => (await query(known)).kind === 'known',
    })
  }
}

const TOLD = { known: 'order', 'not-found': 'no-order', retry: 'nothing', unknown: 'nothing' } as const

/** `mayAsk`: a slot is held for the question. */
type Due = PayinKey & { mayAsk: boolean }

/** What came of a payin that was due, and what is to be asked about it. */
type Taken = { decision: PayinDecision; question?: Question }

const NOTHING: Taken = { decision: { nothing: true } }

/** A payin, and the account to be asked about it. */
type Question = { payin: PayinKey; querier: PayinQuerier; askedAt: Instant }

const postpone = (payin: Payin, dueAt: Instant | null): PayinDecision =>
  change(payin, { ...payin, dueAt }, 'CLOCK', null)
