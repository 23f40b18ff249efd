import { formatRupees, type Paise, paise, sum } from '../payout/money.ts'
import type { GatewayBooks } from './gateway-books.ts'
import { isInReview, type Outcome, type Outcomes, timesPaid } from './outcome.ts'

/** One thing that does not fit together. */
export type Discrepancy = { kind: Kind; who: string; detail: string }
export type Kind =
  | 'no-end'
  | 'two-ends'
  | 'versions'
  | 'end-and-state'
  | 'paid-twice'
  | 'paid-here-only'
  | 'paid-there-only'
  | 'not-settled-there'
  | 'amount'
  | 'fee'
  | 'utr'
  | 'unasked'
  | 'unknown-order'
  | 'sum'
  | 'expectation'

/** Everything that does not fit: an empty list is the proof that this run paid right. */
export function check({ payouts, strayEnds, strayOrders }: Outcomes, books: GatewayBooks): Discrepancy[] {
  return [
    ...payouts.flatMap((payout) => [...checkMessages(payout), ...checkPayment(payout)]),
    ...strayEnds.map(({ payoutId, status }): Discrepancy => {
      return { kind: 'unasked', who: payoutId, detail: `ended ${status}, though nobody asked for it` }
    }),
    ...strayOrders.map(({ mchOrderNo, timesPaid }): Discrepancy => {
      return { kind: 'unknown-order', who: mchOrderNo, detail: `unknown here, paid there ${timesPaid} times` }
    }),
    ...checkSums(payouts, books),
  ]
}

const must = (holds: boolean, kind: Kind, { asked }: Outcome, detail: () => string): Discrepancy[] =>
  holds ? [] : [{ kind, who: `row ${asked.row} (${asked.payoutId})`, detail: detail() }]

/** One end, or a person's turn; every version once, in order, under one event id. */
function checkMessages(payout: Outcome): Discrepancy[] {
  const { ends, state, events, asked } = payout
  const [end] = ends
  const ended = ends.map(({ status, eventId }) => `${status} as ${eventId}`).join(', ')
  return [
    ...must(end !== undefined || isInReview(payout), 'no-end', payout, () => `is ${state ?? 'not heard of'}`),
    ...must(ends.length < 2, 'two-ends', payout, () => `ended ${ended}`),
    ...must(
      !end || end.status === state,
      'end-and-state',
      payout,
      () => `ended ${ended}, its state is ${state}`,
    ),
    ...must(!end || end.amount === asked.amount, 'amount', payout, () =>
      amounts('published', end?.amount, asked.amount),
    ),
    ...must(
      isWithoutGaps(events),
      'versions',
      payout,
      () => `told as ${events.map(({ version }) => version)}`,
    ),
  ]
}

/** New versions come in order from 1; repeats may come at any time, under the same event id. */
function isWithoutGaps(events: Outcome['events']): boolean {
  const ids: string[] = []
  return events.every(({ version, eventId }) => {
    if (version === ids.length + 1) ids.push(eventId)
    return ids[version - 1] === eventId
  })
}

/** What the gateway did is what payoutd said. */
function checkPayment(payout: Outcome): Discrepancy[] {
  const { ends, orders, asked } = payout
  const status = ends[0]?.status
  const times = timesPaid(payout)
  const paidOrder = orders.find((order) => order.timesPaid > 0)
  const fee = ends[0]?.fee
  const utr = ends[0]?.utr
  const wrong = orders.find(({ amount }) => amount !== asked.amount)
  const open = orders.find((order) => order.status === 1)
  return [
    ...must(times < 2, 'paid-twice', payout, () => `was paid ${times} times`),
    ...must(
      status !== 'PAID' || times > 0,
      'paid-here-only',
      payout,
      () => 'is PAID here, and was not paid there',
    ),
    ...must(
      status === undefined || status === 'PAID' || times === 0,
      'paid-there-only',
      payout,
      () => `is ${status} here, and was paid there`,
    ),
    ...must(
      status === undefined || !open,
      'not-settled-there',
      payout,
      () => `is ${status} here, and under way there`,
    ),
    ...must(!wrong, 'amount', payout, () => amounts('ordered', wrong?.amount, asked.amount)),
    ...must(status !== 'PAID' || !paidOrder || fee === paidOrder.fee, 'fee', payout, () =>
      amounts('fee', fee, paidOrder?.fee),
    ),
    ...must(
      status !== 'PAID' || !paidOrder || utr === paidOrder.utr,
      'utr',
      payout,
      () => `${utr} here, ${paidOrder?.utr} there`,
    ),
  ]
}

const rupees = (amount: Paise | null | undefined) =>
  amount === null || amount === undefined ? 'none' : formatRupees(amount)
const amounts = (what: string, found: Paise | null | undefined, wanted: Paise | null | undefined) =>
  `${what}: ${rupees(found)} instead of ${rupees(wanted)}`

/** The gateway's ledger agrees with itself, and with the sum of what payoutd says it paid. */
function checkSums(
  payouts: readonly Outcome[],
  { accounts, everything, balancesAgree }: GatewayBooks,
): Discrepancy[] {
  const { amount, fees } = moneyPaid(payouts)
  const same = (what: string, ours: Paise, theirs: Paise): Discrepancy[] =>
    ours === theirs
      ? []
      : [{ kind: 'sum', who: what, detail: `${formatRupees(ours)} here, ${formatRupees(theirs)} there` }]
  return [
    ...same('amounts paid', amount, accounts.paidOut),
    ...same('fees', fees, accounts.fees),
    ...same('sum of all entries at the gateway', paise(0), everything.sum),
    ...(balancesAgree
      ? []
      : [{ kind: 'sum' as const, who: 'gateway', detail: 'its balances differ from its entries' }]),
  ]
}

/** What was paid as payoutd tells it, and for payouts in review as the gateway tells it: nobody else knows. */
export function moneyPaid(payouts: readonly Outcome[]): { amount: Paise; fees: Paise } {
  const paid = payouts.filter(({ ends }) => ends[0]?.status === 'PAID')
  const inReview = payouts
    .filter(isInReview)
    .flatMap(({ orders }) => orders.filter((order) => order.timesPaid > 0))
  return {
    amount: sum([
      ...paid.map(({ ends }) => ends[0]?.amount ?? paise(0)),
      ...inReview.map(({ amount }) => amount),
    ]),
    fees: sum([...paid.map(({ ends }) => ends[0]?.fee ?? paise(0)), ...inReview.map(({ fee }) => fee)]),
  }
}
