import { nextQueryAt, type QueryPolicy } from '../../domain/payout/next-query.ts'
import type { Anomaly } from '../../domain/payout/payout.ts'
import type { Logger } from '../../platform/log.ts'
import { Rounds } from '../../platform/postgres/rounds.ts'
import type { SharedSlots } from '../../platform/running/shared-slots.ts'
import { type Ledger, ledgerOf, storeDecisions } from '../ledger.ts'
import type { CallbackKind } from './sql/kept-callbacks.ts'
import {
  deleteLostCallback,
  type LostCallback,
  merchantsWithLost,
  putOffLostCallback,
  takeLostCallbacks,
} from './sql/lost-callbacks.ts'

/** Wait before payoutd asks again about an order, if the gateway gave no answer or the account is not in the settings. */
const AGAIN_MS = 600_000
/** With the waits of the default dialect, a day. */
const MOST_NOT_FOUND = 50

/** The wait, in ms, after a turn that found lost callbacks or had no free slots, and after one that found none. */
const SOON_MS = 1_000
const EVERY_MS = 60_000

export type LostCallbacksDeps = { slots: SharedSlots; ledger: Ledger; log: Logger }

/** How to ask the gateway about an order. `ask` never rejects, and resolves to what the gateway reported. */
type LostQuestion = { queryPolicy: QueryPolicy; ask: () => Promise<QueryOutcome> }

/**
 * Asks the gateway about orders that lost a callback while their merchant was not in the settings, ended or not, in slots of
 * their merchants.
 */
export class LostCallbacks {
  readonly #kind: CallbackKind
  readonly #deps: LostCallbacksDeps
  readonly #rounds = new Rounds<{ merchantId: string }>()

  constructor(kind: CallbackKind, deps: LostCallbacksDeps) {
    this.#kind = kind
    this.#deps = deps
  }

  /**
   * One turn of the loop; returns how many ms to wait before the next. Takes as many orders of each merchant as it has free
   * slots; no other turn takes them for ten minutes. `questionOf` returns undefined if payoutd cannot ask about the order.
   * Calls `sign`, a sign of life, after each merchant. Throws if the database fails; still asks about the orders taken by then.
   */
  async turn(
    questionOf: (lost: LostCallback) => LostQuestion | undefined,
    sign: () => void,
  ): Promise<number> {
    const { slots, ledger, log } = this.#deps
    const kind = this.#kind
    const due = await ledger.db.run(merchantsWithLost, { kind, merchantIds: slots.owners })
    let waitMs = EVERY_MS
    await this.#rounds.go(
      due,
      async ({ merchantId }) => {
        if (await this.#askAbout(merchantId, questionOf).finally(sign)) waitMs = SOON_MS
      },
      ({ merchantId }, error) =>
        log.error(
          { err: error, merchantId, kind },
          'cannot query lost callbacks of this merchant now, will retry later',
        ),
    )
    return waitMs
  }

  /** Whether it found any, or had no slot to look for them. */
  #askAbout(
    merchantId: string,
    questionOf: (lost: LostCallback) => LostQuestion | undefined,
  ): Promise<boolean> {
    const { slots, ledger } = this.#deps
    const kind = this.#kind
    return slots.offer(merchantId, async (limit) => {
      if (limit === 0) return true
      const which = { kind, merchantId, limit, againMs: AGAIN_MS }
      const lost = await ledger.db.write('take lost callbacks', takeLostCallbacks, which)
      for (const each of lost) {
        const question = questionOf(each)
        if (!question) continue
        const { queryPolicy, ask } = question
        slots.run(merchantId, async () => concludeLost(kind, each, await ask(), { queryPolicy, ledger }))
      }
      return lost.length > 0
    })
  }
}

/** The gateway's answer about an order, once stored: the order, that it has no such order, or no usable answer. */
export type QueryOutcome = 'order' | 'no-order' | 'nothing'

/**
 * Applies the gateway's answer about an order that lost a callback. Deletes the note of the loss once the gateway has reported
 * the order. If it has no such order, and payoutd does not ask about the order anyway, payoutd asks again after the waits of the
 * query policy. The last such answer becomes an anomaly (`lost-callback`).
 */
async function concludeLost(
  kind: CallbackKind,
  lost: LostCallback,
  outcome: QueryOutcome,
  { queryPolicy, ledger }: { queryPolicy: QueryPolicy; ledger: Ledger },
): Promise<void> {
  if (outcome === 'nothing') return
  const isKnown = outcome === 'order' || lost.isAskedAbout
  const notFoundCount = lost.notFoundCount + 1
  const { db } = ledgerOf(ledger, lost.merchantId)
  await db.transaction('settle lost callback', async (tx) => {
    if (!isKnown && notFoundCount < MOST_NOT_FOUND) {
      await tx.run(putOffLostCallback, {
        ...lost,
        kind,
        notFoundCount,
        waitMs: nextQueryAt(notFoundCount, queryPolicy, 0),
      })
      return
    }
    const forgotten = await tx.run(deleteLostCallback, { ...lost, kind })
    if (!isKnown && forgotten.length > 0) await storeDecisions(tx, ledger, [{ anomaly: neverHeard(lost) }])
  })
}

const neverHeard = ({ merchantId, orderNo, payoutId }: LostCallback): Anomaly => ({
  ...{
    merchantId,
    orderNo,
    payoutId: payoutId || null,
    source: 'QUERY',
    kind: 'lost-callback',
    exchange: null,
  },
  detail: `a callback about this order was lost, or nobody could ask about it, and since then the gateway said ${MOST_NOT_FOUND} times that it has no such order`,
})
