import type { Instant } from '../../domain/instant.ts'
import type { QueryPolicy } from '../../domain/payout/next-query.ts'
import type { QueryRecord } from '../../domain/payout/record-query-answer.ts'
import { accountWith } from '../../gateway/accounts.ts'
import { MOST_ASKED, type PresenceCheck } from '../../gateway/presence-check.ts'
import { LostCallbacks, type QueryOutcome } from '../../ledger/callbacks/lost-callbacks.ts'
import type { CallbackKind } from '../../ledger/callbacks/sql/kept-callbacks.ts'
import { DueBatches, type QuestionLimit, soon } from '../../ledger/due-batches.ts'
import { keepRefused, type SaidAbout } from '../../ledger/evidence/refused-evidence.ts'
import { type Ledger, ledgerOf } from '../../ledger/ledger.ts'
import type { Logger } from '../../platform/log.ts'
import { Batchers } from '../../platform/postgres/batchers.ts'
import { atMost, type Database, type Transaction } from '../../platform/postgres/postgres.ts'
import { shareOf } from '../../platform/postgres/shares.ts'
import { quietPause } from '../../platform/running/quiet.ts'
import { SharedSlots } from '../../platform/running/shared-slots.ts'

/** How to ask one gateway account of a merchant about an order. */
export type Querier<Answer> = {
  accountId: string
  baseUrl: string
  queryPolicy: QueryPolicy
  settingsHash: string
  query: (mchOrderNo: string) => Promise<Answer>
  /** The longest that one query takes. */
  timeoutMs: number
}

export type PollerDeps<Answer> = {
  ledger: Ledger
  /** By merchant: the account in its settings, then its former ones. */
  queriers: ReadonlyMap<string, readonly [Querier<Answer>, ...Querier<Answer>[]]>
  presenceCheck: Pick<PresenceCheck, keyof PresenceCheck>
  log: Logger
}

/** What differs between payouts and payins when time passes without a callback. */
export type Polled<Key, Item, Decision, Answer, Evidence> = {
  kind: CallbackKind
  /** Queries under way at once, in one process. */
  mostQueries: number
  /** Merchants handled at once: each uses a connection. */
  mostAtOnce: number
  /** How many items of each merchant time alone changes in one turn. */
  mostTimers: number
  /** How long to wait after a turn in which nothing moved, at first. */
  idleMs: number
  keyOf: (key: Key) => string
  /** How an anomaly names the item. */
  about: (key: Key) => Omit<SaidAbout, 'source'>
  /** Due items that need no query: up to `ofEach` of each merchant. */
  findTimers: (db: Database, ofEach: number, merchantIds: string[]) => Promise<Key[]>
  /** Due items that need a query, within the limits of each merchant. */
  findQuestions: (db: Database, limits: readonly QuestionLimit[]) => Promise<Key[]>
  transaction: <Result>(db: Database, work: (tx: Transaction) => Promise<Result>) => Promise<Result>
  /** Locks those of one merchant that are still due. */
  lock: (tx: Transaction, merchantId: string, keys: readonly Key[]) => Promise<Item[]>
  /**
   * What time alone does to one item. `ask`: payoutd asks the gateway as soon as there is a slot; `postponed`: keeps other
   * processes from asking until then. Without a `querier` payoutd cannot ask.
   */
  decide: (
    tx: Transaction,
    item: Item,
    querier: Querier<Answer> | undefined,
  ) => Promise<Decision | { ask: Queried; postponed: (until: Instant) => Decision }>
  store: (tx: Transaction, ledger: Ledger, decisions: readonly (Decision | Nothing)[]) => Promise<void>
  /** What an answer means for the order. */
  outcomeOf: (answer: Answer) => QueryOutcome
  /** Orders that this account itself has reported, from before and after the one that was asked about. Null: it never did. */
  knownOrders: (db: Database, order: Queried, accountId: string) => Promise<string[] | null>
  evidenceOf: (order: Queried & { orderNo: string }, answer: Answer, record: QueryContext) => Evidence
  apply: (evidence: readonly Evidence[], ledger: Ledger) => Promise<undefined[]>
  withoutTexts: (evidence: Evidence) => Evidence
  orderOf: (evidence: Evidence) => string
}

/** An order to ask about. `orderNo` null: it has no number yet. */
export type Queried = { merchantId: string; payoutId: string | null; orderNo: string | null }

/**
 * `accountId`, `baseUrl`: the account whose gateway payoutd asked; `queryPolicy`: of its dialect, by which payoutd decides about the
 * answer; `settingsHash`: of the merchant's settings used. The answer counts only while those are in force.
 */
export type QueryContext = QueryRecord & {
  accountId: string
  baseUrl: string
  queryPolicy: QueryPolicy
  settingsHash: string
}

type Nothing = { nothing: true }

/** `mayAsk`: the item holds a slot for a query. */
type Due<Key> = Key & { mayAsk: boolean }

/** The decision about a due item, and the query to make about it. */
type Taken<Decision, Answer> = { decision: Decision | Nothing; question?: Question<Answer> }

type Question<Answer> = { order: Queried; querier: Querier<Answer>; askedAt: Instant }

/**
 * Handles due items: applies what time alone changes, and asks the gateway about orders without a callback. Time-driven changes
 * wait for no query, and no merchant waits for another.
 */
export class Poller<
  Key extends { merchantId: string },
  Item extends Key & { accountId: string | null },
  Decision extends object,
  Answer,
  Evidence,
> {
  readonly #polled: Polled<Key, Item, Decision, Answer, Evidence>
  readonly #deps: PollerDeps<Answer>
  readonly #slots: SharedSlots
  readonly #evidence: Batchers<Evidence, undefined>
  readonly #due: DueBatches<Due<Key>, Taken<Decision, Answer>>
  readonly #taking: Database
  readonly #lost: LostCallbacks
  #idleTurns = 0

  constructor(polled: Polled<Key, Item, Decision, Answer, Evidence>, deps: PollerDeps<Answer>) {
    this.#polled = polled
    this.#deps = deps
    this.#slots = new SharedSlots(polled.mostQueries, deps.queriers.keys(), deps.log)
    this.#evidence = new Batchers(
      { size: 200, waitMs: 5, bare: polled.withoutTexts, about: polled.orderOf },
      (evidence, merchantId) => polled.apply(evidence, ledgerOf(deps.ledger, merchantId)),
    )
    this.#taking = atMost(polled.mostAtOnce, deps.ledger.db)
    const { keyOf, about } = polled
    const { ledger, log } = deps
    this.#due = new DueBatches<Due<Key>, Taken<Decision, Answer>>((due) => this.#take(due), {
      ...{ keyOf, about, ledger, log },
    })
    this.#lost = new LostCallbacks(polled.kind, { ...deps, slots: this.#slots })
  }

  /** One turn of the loop; returns how many ms to wait before the next. */
  async turn(): Promise<number> {
    const taken = [...(await this.#moveTimers()), ...(await this.#queryDue())]
    const isIdle = !taken.some((each) => each && !('nothing' in each.decision))
    this.#idleTurns = isIdle ? this.#idleTurns + 1 : 0
    const { idleMs } = this.#polled
    return isIdle ? quietPause(this.#idleTurns * idleMs, idleMs) : 0
  }

  /**
   * Asks about orders that lost a callback while their merchant was not in the settings, ended or not. Returns how many ms to
   * wait before the next turn.
   */
  queryLost(sign: () => void): Promise<number> {
    return this.#lost.turn((lost) => {
      const querier = this.#querierFor(lost)
      if (!querier) return undefined
      const { queryPolicy } = querier
      const order = { ...lost, payoutId: lost.payoutId || null }
      return { queryPolicy, ask: () => this.#query({ order, querier, askedAt: lost.askedAt }) }
    }, sign)
  }

  async drain(): Promise<void> {
    await this.#due.drain()
    await this.#slots.drain()
    await this.#evidence.drain()
  }

  async #moveTimers(): Promise<(Taken<Decision, Answer> | undefined)[]> {
    const { mostTimers, findTimers } = this.#polled
    const { ledger, queriers } = this.#deps
    const found = await findTimers(ledger.db, this.#due.lookFor(mostTimers), [...queriers.keys()])
    const timers = found.map((key) => ({ ...key, mayAsk: false }))
    return soon(this.#due.free(timers, mostTimers).map((timer) => this.#due.take(timer)))
  }

  #queryDue(): Promise<(Taken<Decision, Answer> | undefined)[]> {
    return this.#due.takeInSlots(
      this.#slots,
      async (limits) => {
        const found = await this.#polled.findQuestions(this.#deps.ledger.db, limits)
        return found.map((key) => ({ ...key, mayAsk: true }))
      },
      async ({ question }) => question && this.#query(question),
    )
  }

  /** Handles due items of one merchant. Null: it is locked, or no longer due. */
  async #take(due: readonly Due<Key>[]): Promise<(Taken<Decision, Answer> | null)[]> {
    const { keyOf, transaction, lock, store } = this.#polled
    const [{ merchantId }] = due as readonly [Due<Key>]
    return transaction(this.#taking, async (tx) => {
      const items = new Map((await lock(tx, merchantId, due)).map((item) => [keyOf(item), item]))
      const taken: (Taken<Decision, Answer> | null)[] = []
      for (const key of due) {
        const item = items.get(keyOf(key))
        taken.push(item ? await this.#decide(tx, item, key.mayAsk) : null)
      }
      const decisions = taken.flatMap((each) => (each ? [each.decision] : []))
      await store(tx, this.#deps.ledger, decisions)
      return taken
    })
  }

  async #decide(tx: Transaction, item: Item, mayAsk: boolean): Promise<Taken<Decision, Answer>> {
    const querier = this.#querierFor(item)
    const decision = await this.#polled.decide(tx, item, querier)
    if (!('ask' in decision)) return { decision }
    if (!querier || !mayAsk) return { decision: { nothing: true } }
    // Keeps other processes from asking for as long as its query and those of the presence check take.
    const postponed = decision.postponed(tx.now + (1 + MOST_ASKED) * querier.timeoutMs)
    return { decision: postponed, question: { order: decision.ask, querier, askedAt: tx.now } }
  }

  /** The querier of the account that has the order; undefined: the account is not in these settings. */
  #querierFor({ merchantId, accountId }: { merchantId: string; accountId: string | null }) {
    const queriers = this.#deps.queriers.get(merchantId)
    return queriers && accountWith(queriers, accountId)
  }

  /** Resolves to what the gateway reported about the order, once that is stored. */
  async #query({ order, querier, askedAt }: Question<Answer>): Promise<QueryOutcome> {
    const { merchantId, payoutId, orderNo } = order
    if (orderNo === null) return 'nothing'
    const { accountId, baseUrl, queryPolicy } = querier
    const [{ settingsHash }] = this.#deps.queriers.get(merchantId) as readonly [Querier<Answer>]
    try {
      const answer = await querier.query(orderNo)
      const outcome = this.#polled.outcomeOf(answer)
      const presence = await this.#checkPresence({ ...order, orderNo }, querier, outcome)
      const context = { accountId, baseUrl, queryPolicy, settingsHash, askedAt, presence }
      await this.#evidence.add(merchantId, this.#polled.evidenceOf({ ...order, orderNo }, answer, context))
      return outcome
    } catch (error) {
      this.#deps.log.error(
        { err: error, merchantId, payoutId, orderNo },
        'query result not stored, will query again',
      )
      await keepRefused(error, { merchantId, payoutId, orderNo, source: 'QUERY' }, this.#deps)
      return 'nothing'
    }
  }

  /** Whether a "not found" counts: only if the same settings find orders that are known to exist. Null: the account never confirmed any. */
  async #checkPresence(
    order: Queried & { orderNo: string },
    querier: Querier<Answer>,
    outcome: QueryOutcome,
  ): Promise<boolean | null> {
    const { presenceCheck, ledger } = this.#deps
    const { knownOrders, outcomeOf } = this.#polled
    const { accountId, settingsHash } = querier
    if (outcome === 'order') presenceCheck.found(settingsHash, order.orderNo)
    if (outcome !== 'no-order') return false
    return presenceCheck.holds(settingsHash, {
      known: () => knownOrders(shareOf(ledger.db, order.merchantId), order, accountId),
      finds: async (mchOrderNo) => outcomeOf(await querier.query(mchOrderNo)) === 'order',
    })
  }
}
