import { formatRupees, type Paise, paise, sum } from '../../src/domain/money.ts'
import type { GatewayBooks } from './gateway-books.ts'
import type { LedgerRecord } from './ledger-records.ts'
import { type ExpectedOutcome, isInReview, type Outcomes, timesPaid } from './outcome.ts'

/** One thing that does not fit, and the invariant of docs/design.md that it breaks. */
export type Discrepancy = { invariant: Invariant | null; kind: CheckKind; who: string; detail: string }

/** The invariants of docs/design.md by their numbers there, as far as an outsider can check them. */
export const INVARIANTS = {
  1: 'a payout is unique by its id',
  2: 'the intent is committed under one order number before a byte leaves',
  3: "paid and failed are the gateway's signed word, or a person's",
  4: 'state, history and messages change together',
  5: 'what settles a payout is about its order and its amount',
  6: 'accepted = waiting + reserved + paid + released, within the balance',
  7: 'every accepted payout ends, or is in review',
  8: 'every row of a file is accounted for',
  10: 'paid at most once, to whom it was asked for, and every end is told under one event id',
} as const
export type Invariant = keyof typeof INVARIANTS

const BREAKS = {
  'not-requested': 1,
  'not-in-ledger': 8,
  'sent-unintended': 2,
  'other-order': 2,
  'without-evidence': 3,
  history: 4,
  versions: 4,
  'end-and-state': 4,
  amount: 5,
  fee: 5,
  utr: 5,
  'evidence-differs': 5,
  overdrawn: 6,
  sum: 6,
  'no-end': 7,
  'needless-review': 7,
  'two-ends': 10,
  'paid-twice': 10,
  'wrong-payee': 10,
  'paid-here-only': 10,
  'paid-there-only': 10,
  'not-ended-there': 10,
  'unknown-order': 10,
  /** A row of the demo's payroll without its expected result. */
  expectation: null,
} as const satisfies Record<string, Invariant | null>
export type CheckKind = keyof typeof BREAKS

export const discrepancy = (kind: CheckKind, who: string, detail: string): Discrepancy => ({
  invariant: BREAKS[kind],
  kind,
  who,
  detail,
})

/** Everything that does not fit: an empty list proves that this run paid correctly. */
export function check(outcomes: Outcomes, books: GatewayBooks): Discrepancy[] {
  const { payouts, strayEnds, strayPayouts, strayOrders } = outcomes
  return [
    ...payouts.flatMap((payout) => [...checkMessages(payout), ...checkKept(payout), ...checkPayment(payout)]),
    ...strayEnds.map(({ payoutId, status }) =>
      discrepancy('not-requested', payoutId, `ended ${status}, though nobody requested it`),
    ),
    ...strayPayouts.map(({ payoutId }) =>
      discrepancy('not-requested', payoutId, 'is in the ledger, though nobody requested it'),
    ),
    ...strayOrders.map(({ mchOrderNo, timesPaid }) =>
      discrepancy('unknown-order', mchOrderNo, `unknown here, paid there ${timesPaid} times`),
    ),
    ...checkSums(payouts, books),
  ]
}

/**
 * Payouts in review although the gateway has their order and could report the outcome. Unless a test is about
 * something else, a person decides only about an absent order.
 */
export const needlessReviews = ({ payouts }: Outcomes): Discrepancy[] =>
  payouts.flatMap((payout) =>
    must(
      !isInReview(payout) || payout.orders.length === 0,
      'needless-review',
      payout,
      () => 'waits for a person, and the gateway has its order',
    ),
  )

const must = (
  holds: boolean,
  kind: CheckKind,
  { asked }: ExpectedOutcome,
  detail: () => string,
): Discrepancy[] => (holds ? [] : [discrepancy(kind, `row ${asked.row} (${asked.payoutId})`, detail())])

/** One end, or in review; every version once, in order, under one event id. */
function checkMessages(payout: ExpectedOutcome): Discrepancy[] {
  const { ends, state, events, asked } = payout
  const [end] = ends
  const ended = ends.map(({ status, eventId }) => `${status} as ${eventId}`).join(', ')
  return [
    ...must(end !== undefined || isInReview(payout), 'no-end', payout, () => `is ${state ?? 'not known'}`),
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
function isWithoutGaps(events: ExpectedOutcome['events']): boolean {
  const ids: string[] = []
  return events.every(({ version, eventId }) => {
    if (version === ids.length + 1) ids.push(eventId)
    return ids[version - 1] === eventId
  })
}

/** The states that the gateway causes, and the status that reports each (gateway contract). */
const SAYS: Readonly<Record<string, string>> = { paid: '2', failed: '3' }

/** The ledger is consistent, and every end in it rests on the gateway's report about this very order. */
function checkKept(payout: ExpectedOutcome): Discrepancy[] {
  const { kept, asked, orders } = payout
  if (!kept) return must(false, 'not-in-ledger', payout, () => 'is not in the ledger')
  const { history, attempts, state, version, orderNo } = kept
  const moves = history
    .filter((each) => each.version !== null)
    .sort((a, b) => Number(a.version) - Number(b.version))
  const last = moves.at(-1)
  const applied = orders.reduce((calls, { applyCalls }) => calls + applyCalls, 0)
  return [
    ...must(kept.amount === asked.amount, 'amount', payout, () => amounts('kept', kept.amount, asked.amount)),
    ...must(
      moves.every((each, i) => each.version === i + 1) && last?.version === version && last.toState === state,
      'history',
      payout,
      () =>
        `is ${state} at version ${version}; its history is ${moves.map((each) => `${each.version} ${each.toState}`)}`,
    ),
    ...must(
      applied <= attempts.length,
      'sent-unintended',
      payout,
      () => `the gateway was asked ${applied} times, committed to were ${attempts.length} attempts`,
    ),
    ...must(
      attempts.every((each) => each === orderNo),
      'other-order',
      payout,
      () => `is ${orderNo}, and was sent as ${attempts}`,
    ),
    ...must(
      !history.some(({ said }) => said?.retCode === 'BALANCE_SHORT'),
      'overdrawn',
      payout,
      () => 'was sent though the balance did not cover it',
    ),
    ...checkEnd(payout, kept),
  ]
}

function checkEnd(
  payout: ExpectedOutcome,
  { history, state, amount, orderNo, version }: LedgerRecord,
): Discrepancy[] {
  const status = SAYS[state]
  if (status === undefined) return []
  const end = history.find((each) => each.version === version)
  // An end that a restored ledger read back has no statement of its own; the gateway's repeated report follows it.
  const saidAgain = history.find((each) => each.version === null && each.toState === state && each.said)
  const source = end?.source ?? 'nobody'
  const said = end?.said ?? saidAgain?.said ?? null
  if (source === 'OPERATOR') return []
  // A refused apply is the only other proof that a payout failed; it names neither order nor amount.
  if (source === 'APPLY' && state === 'failed') return []
  const heard = source === 'CALLBACK' || source === 'QUERY'
  return [
    ...must(
      heard && said?.status === status,
      'without-evidence',
      payout,
      () => `is ${state} by ${source}, which said status ${said?.status ?? 'nothing'}`,
    ),
    ...must(
      !heard || (said?.amount === String(amount) && said.mchOrderNo === orderNo),
      'evidence-differs',
      payout,
      () =>
        `is ${orderNo} of ${amount} paise, and ended by a report about ${said?.mchOrderNo} of ${said?.amount}`,
    ),
  ]
}

/** What the gateway did matches what payoutd reported. */
function checkPayment(payout: ExpectedOutcome): Discrepancy[] {
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
      'not-ended-there',
      payout,
      () => `is ${status} here, and under way there`,
    ),
    ...must(!wrong, 'amount', payout, () => amounts('ordered', wrong?.amount, asked.amount)),
    ...must(
      orders.every(({ payee }) => payee === asked.payee),
      'wrong-payee',
      payout,
      () => 'was ordered for another account than was asked for',
    ),
    ...must(status !== 'PAID' || !paidOrder || fee === paidOrder.fee || byPerson(ends), 'fee', payout, () =>
      amounts('fee', fee, paidOrder?.fee),
    ),
    ...must(status === 'PAID' || fee == null, 'fee', payout, () => amounts('fee', fee, null)),
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

/** The gateway's ledger is consistent, and agrees with the sum of what payoutd reports as paid. */
function checkSums(
  payouts: readonly ExpectedOutcome[],
  { accounts, everything, balancesAgree }: GatewayBooks,
): Discrepancy[] {
  const { amount, fees } = moneyPaid(payouts)
  const same = (what: string, ours: Paise, theirs: Paise): Discrepancy[] =>
    ours === theirs
      ? []
      : [discrepancy('sum', what, `${formatRupees(ours)} here, ${formatRupees(theirs)} there`)]
  return [
    ...same('amounts paid', amount, accounts.paidOut),
    ...same('fees', fees, accounts.fees),
    ...same('sum of all entries at the gateway', paise(0), everything.sum),
    ...(balancesAgree ? [] : [discrepancy('sum', 'gateway', 'its balances differ from its entries')]),
  ]
}

/** A person who reports a payment knows the bank's reference, but not the gateway's fee. */
const byPerson = ([end]: ExpectedOutcome['ends']): boolean => end?.evidence === 'OPERATOR' && end.fee === null

/**
 * The money paid by payoutd's reports. For payouts in review, and for fees that no person knew, it uses the
 * gateway's, the only source.
 */
export function moneyPaid(payouts: readonly ExpectedOutcome[]): { amount: Paise; fees: Paise } {
  const paid = payouts.filter(({ ends }) => ends[0]?.status === 'PAID')
  const inReview = ordersPaid(payouts.filter(isInReview))
  return {
    amount: sum([
      ...paid.map(({ ends }) => ends[0]?.amount ?? paise(0)),
      ...inReview.map(({ amount }) => amount),
    ]),
    fees: sum([
      ...paid.map(({ ends }) => ends[0]?.fee ?? paise(0)),
      ...[...inReview, ...ordersPaid(paid.filter(({ ends }) => byPerson(ends)))].map(({ fee }) => fee),
    ]),
  }
}

const ordersPaid = (payouts: readonly ExpectedOutcome[]) =>
  payouts.flatMap(({ orders }) => orders.filter((order) => order.timesPaid > 0))
