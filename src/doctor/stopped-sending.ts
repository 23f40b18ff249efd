import { formatTime } from '../domain/times.ts'
import { SHARDS } from '../messages/messages.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { pause } from '../platform/running/lifecycle.ts'
import { circuitOf, pauseOf, recoveryOf } from '../queries/merchant-overview.ts'
import { ledgerGauges } from '../queries/sql/ledger-gauges.ts'
import {
  inReview,
  type MerchantRow,
  merchantRows,
  type PayinsInReview,
  payinsInReview,
} from '../queries/sql/merchants.ts'
import { type MixedLately, mixedLately } from '../queries/sql/mixed-lately.ts'
import { OVERDUE_COUNTED_UP_TO, type Overdue, overdue } from '../queries/sql/overdue.ts'
import { type AwaitingRelease, awaitingRelease } from '../queries/sql/payouts/holds.ts'
import { COUNT_WAITING_UP_TO, type Shortage, shortages } from '../queries/sql/shortages.ts'
import { circuitText, pauseText, recoveryText } from '../views/merchant-text.ts'
import { shortageText } from '../views/shortage-text.ts'
import { type Check, type Finding, good, warning, wrong } from './examine.ts'
import { type Sendable, sendable } from './sql/standing-still.ts'

/** Why nothing may move though everything works. */
export const stoppedSendingChecks = (db: Database): Check[] => [
  {
    name: 'paused merchants',
    needs: ['migrations'],
    run: async () => checkPauses(await db.run(merchantRows, {})),
  },
  {
    name: 'circuits',
    needs: ['migrations'],
    run: async () => checkCircuits(await db.run(merchantRows, {})),
  },
  {
    name: 'mixed answers',
    needs: ['migrations'],
    run: async () => checkAnswers(await db.run(mixedLately, {})),
  },
  {
    name: 'payouts in review',
    needs: ['migrations'],
    run: async () => checkReviews(await db.run(inReview, {})),
  },
  {
    name: 'payins in review',
    needs: ['migrations'],
    run: async () => checkPayinReviews(await db.run(payinsInReview, {})),
  },
  {
    name: 'payouts held',
    needs: ['migrations'],
    run: async () => checkHolds(await db.run(awaitingRelease, {})),
  },
  {
    name: 'fenced merchants',
    needs: ['migrations'],
    run: async () => checkRecoveries(await db.run(merchantRows, {})),
  },
  {
    name: 'balances',
    needs: ['migrations'],
    run: async () =>
      checkShortages(await db.run(shortages, { merchantId: null, countUpTo: COUNT_WAITING_UP_TO })),
  },
  {
    name: 'payouts waiting',
    needs: ['migrations'],
    run: async () =>
      checkSending(await lookTwice(() => db.run(sendable, { countUpTo: COUNT_WAITING_UP_TO }))),
  },
  {
    name: 'payouts overdue',
    needs: ['migrations'],
    run: async () => checkOverdue(await lookTwice(() => db.run(overdue, {}))),
  },
  {
    name: 'messages waiting',
    needs: ['migrations'],
    run: async () => {
      const [row] = await db.run(ledgerGauges, { shards: SHARDS, countUpTo: COUNT_WAITING_UP_TO })
      return checkPublishing(row?.outboxOldestSeconds ?? 0)
    },
  },
]

const LOOK_AGAIN_MS = 2_000

type TwoLooks<Row> = { before: Row[]; after: Row[] }

async function lookTwice<Row>(look: () => Promise<Row[]>): Promise<TwoLooks<Row>> {
  const before = await look()
  if (before.length === 0) return { before, after: [] }
  await pause(LOOK_AGAIN_MS)
  return { before, after: await look() }
}

/** Those that are the same in these fields in both looks. */
const unmoved = <Row>({ before, after }: TwoLooks<Row>, fields: readonly (keyof Row)[]): Row[] =>
  after.filter((row) => before.some((one) => fields.every((field) => one[field] === row[field])))

/** Payouts that could be sent are good if something happens between the two looks. */
export function checkSending(looks: TwoLooks<Sendable>): Finding {
  const stuck = unmoved(looks, ['merchantId', 'claimedTotal', 'nextPayoutId'])
  if (stuck.length === 0) return good('no payout waits that could be sent')
  const counts = stuck.map(
    ({ merchantId, waiting }) => `${countText(waiting, COUNT_WAITING_UP_TO)} of merchant ${merchantId}`,
  )
  return wrong(
    `payouts could be sent, and no payoutd sends them: ${counts.join(', ')}`,
    'start payoutd serve with the role dispatch. If one runs, look at its log: after payoutd merchant adopt, or a migration, it must be ' +
      'started again; or the gateway does not tell it the balance; or another session keeps a lock on the row of the merchant ' +
      '(pg_blocking_pids)',
  )
}

/**
 * Payouts whose time has come: for a query, the end of a lease, their schedule or their deadline. A great many of one moment take
 * minutes, so they are good if the first moves between the two looks.
 */
export function checkOverdue(looks: TwoLooks<Overdue>): Finding {
  const late = unmoved(looks, ['merchantId', 'firstPayoutId'])
  if (late.length === 0) return good('no payout is overdue')
  const sentences = late.map(
    ({ merchantId, count, oldestSeconds }) =>
      `${countText(count, OVERDUE_COUNTED_UP_TO)} of merchant ${merchantId}, the first for ${Math.round(oldestSeconds)} s`,
  )
  return warning(
    `payouts should have been asked about or moved on, and were not: ${sentences.join('; ')}`,
    'start payoutd serve with the role outcomes. If one runs, look at its log: the gateway may answer too slowly for so many, or ' +
      'another session keeps locks on these payouts (pg_blocking_pids)',
  )
}

const countText = (count: number, upTo: number): string => (count >= upTo ? `${upTo} or more` : String(count))

/** A relay publishes within a second, unless Kafka is away. */
const LONG_UNPUBLISHED_S = 60

export function checkPublishing(oldestSeconds: number): Finding {
  if (oldestSeconds < LONG_UNPUBLISHED_S) return good('no message waits for long to be published')
  return wrong(
    `messages have waited for ${Math.round(oldestSeconds)} s, and no payoutd publishes them`,
    'start payoutd serve with the role relay. If one runs, look at its log: Kafka may not answer, or not take them',
  )
}

export function checkRecoveries(merchants: readonly MerchantRow[]): Finding {
  const fenced = merchants.flatMap((row) => {
    const recovering = recoveryOf(row)
    return recovering ? [recoveryText(row.merchantId, recovering)] : []
  })
  if (fenced.length === 0) return good('no merchant is fenced')
  return warning(
    fenced.join('; '),
    'payoutd recover queries the remaining payouts, then lets sending continue (docs/how-to/failover.md says when --nothing-lost may do so at once)',
  )
}

export function checkShortages(short: readonly Shortage[]): Finding {
  if (short.length === 0) return good('every balance covers the next payout')
  return warning(
    short.map(shortageText).join('; '),
    'wait for the results that are not known yet, add that much to the balance at the gateway, or cancel the payout: smaller payouts behind it wait for it',
  )
}

export function checkPauses(merchants: readonly MerchantRow[]): Finding {
  const paused = merchants.flatMap((row) => {
    const pause = pauseOf(row)
    return pause ? [pauseText(row.merchantId, pause)] : []
  })
  if (paused.length === 0) return good('no merchant is paused')
  return warning(paused.join('; '), 'once the cause is gone, run payoutd resume')
}

export function checkCircuits(merchants: readonly MerchantRow[]): Finding {
  const open = merchants.flatMap((row) => {
    const circuit = circuitOf(row)
    return circuit ? [circuitText(row.merchantId, circuit)] : []
  })
  if (open.length === 0) return good('no circuit is open')
  return warning(
    open.join('; '),
    'ask the gateway what is wrong; payoutd tries again by itself, with what the balance covers',
  )
}

function checkAnswers(mixed: readonly MixedLately[]): Finding {
  if (mixed.length === 0) return good('no gateway mixed answers up within the last day')
  const sentences = mixed.map(({ baseUrl, merchantId, orderNo, mixedUntil }) => {
    const asked = orderNo === null ? `the balance of ${merchantId}` : `order ${orderNo} of ${merchantId}`
    return `${baseUrl} answered a question about ${asked} with another order until ${formatTime(mixedUntil)}: no order there counts as absent until the dialect’s absence.graceMs has passed since`
  })
  return warning(
    sentences.join('; '),
    'look for a proxy before the gateway that shares or reuses connections, or ask the gateway what is wrong. If it is ' +
      'always the same order, no order there counts as absent for as long as payoutd asks about that one, also to check that the ' +
      'gateway finds orders it has: payouts that are absent then wait for a person at their deadline',
  )
}

export function checkReviews(counts: readonly { merchantId: string; count: number }[]): Finding {
  const waiting = counts.filter(({ count }) => count > 0)
  if (waiting.length === 0) return good('no payout is in review')
  return warning(
    `a person has to decide: ${waiting.map(({ merchantId, count }) => `${count} of merchant ${merchantId}`).join(', ')}`,
    'payoutd payout review shows them with their evidence; payoutd payout resolve records the decision',
  )
}

export function checkPayinReviews(reviews: readonly PayinsInReview[]): Finding {
  if (reviews.length === 0) return good('no payin is in review')
  const sentences = reviews.map(
    ({ merchantId, count, oldestId, oldestAt }) =>
      `${count} of merchant ${merchantId}, the oldest ${oldestId} from ${formatTime(oldestAt)}`,
  )
  return warning(
    `it is unknown whether these payins are paid: ${sentences.join('; ')}`,
    'payoutd payin review shows them with their evidence. payoutd queries each every hour if its gateway account is in ' +
      'the settings. payoutd payin recover asks the gateway to find a payment by its UTR; payoutd payin resolve records a decision',
  )
}

export function checkHolds(held: readonly AwaitingRelease[]): Finding {
  if (held.length === 0) return good('no payout waits for a release')
  return warning(
    `a person has to look: ${held.map(({ merchantId, reason, count }) => `${count} of merchant ${merchantId} (${reason})`).join(', ')}`,
    'payoutd payout list --state held shows them; release them with payoutd payout release, or cancel them with payoutd payout cancel. payoutd cancels a payout that nobody released by its deadline',
  )
}
