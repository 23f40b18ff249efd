import { createHash } from 'node:crypto'
import type { PayoutCommand } from '../../src/domain/commands/command.ts'
import type { Paise } from '../../src/domain/money.ts'
import type { GatewayOrder } from './gateway-books.ts'
import type { LedgerRecord } from './ledger-records.ts'
import type { PublishedEvent, PublishedRecords, PublishedResult } from './published-messages.ts'

/** One requested payout as its sender knows it, without anything that payoutd reported. */
export type RequestedPayout = {
  merchantId: string
  payoutId: string
  amount: Paise
  /** The beneficiary, as the gateway's books show it (`payeeOf`). */
  payee: string
  /** The row in its file, or its place among the requests, so that a person can find it. */
  row: number
}

/** The `payee` that an order of this payout has in the gateway's books (devkit/sandbox/README.md, "The books"). */
export const payeeOf = ({
  accountNo,
  ifsc,
  vpa,
}: Pick<PayoutCommand, 'accountNo' | 'ifsc' | 'vpa'>): string =>
  createHash('sha256')
    .update(`${accountNo}\n${vpa ?? ifsc}`)
    .digest('hex')

/** Everything that was reported and done about one requested payout. */
export type ExpectedOutcome = {
  asked: RequestedPayout
  /** One per event id, so exactly one for a payout that ended. */
  ends: PublishedResult[]
  /** Every delivery, in reading order. */
  events: PublishedEvent[]
  /** The state of the highest version; null: nothing was published. */
  state: string | null
  /** What payoutd's ledger contains about it; null: nothing. */
  kept: LedgerRecord | null
  /** Its orders at the gateway, by the order numbers that payoutd published for it or committed to. */
  orders: GatewayOrder[]
}

export type Outcomes = {
  payouts: ExpectedOutcome[]
  /** Ends of payouts that nobody requested. */
  strayEnds: PublishedResult[]
  /** Payouts in payoutd's ledger that nobody requested. */
  strayPayouts: LedgerRecord[]
  /** Orders that belong to no requested payout. */
  strayOrders: GatewayOrder[]
}

/** Combines the requests, what payoutd published and keeps, and what the gateway did. */
export function outcomesOf(
  asked: readonly RequestedPayout[],
  told: Omit<PublishedRecords, 'payins'>,
  kept: readonly LedgerRecord[],
  orders: readonly GatewayOrder[],
): Outcomes {
  const payouts = new Map(asked.map((each) => [whose(each), empty(each)]))
  const ownerOf = new Map<string, string>()
  for (const event of told.events) {
    const outcome = payouts.get(whose(event))
    if (!outcome) continue
    outcome.events.push(event)
    if (event.mchOrderNo !== null) ownerOf.set(event.mchOrderNo, whose(event))
  }
  const strayPayouts: LedgerRecord[] = []
  for (const each of kept) {
    const outcome = payouts.get(whose(each))
    if (!outcome) {
      strayPayouts.push(each)
      continue
    }
    outcome.kept = each
    for (const orderNo of [each.orderNo, ...each.attempts]) if (orderNo) ownerOf.set(orderNo, whose(each))
  }
  const strayEnds: PublishedResult[] = []
  for (const result of told.results) {
    const outcome = payouts.get(whose(result))
    if (!outcome) strayEnds.push(result)
    else if (!outcome.ends.some(({ eventId }) => eventId === result.eventId)) outcome.ends.push(result)
  }
  const strayOrders: GatewayOrder[] = []
  for (const order of orders) {
    const outcome = payouts.get(ownerOf.get(order.mchOrderNo) ?? '')
    if (outcome) outcome.orders.push(order)
    else strayOrders.push(order)
  }
  for (const outcome of payouts.values()) outcome.state = latest(outcome.events)?.toState ?? null
  return { payouts: [...payouts.values()], strayEnds, strayPayouts, strayOrders }
}

/** Two merchants may use the same payoutId. */
export const whose = ({ merchantId, payoutId }: Pick<RequestedPayout, 'merchantId' | 'payoutId'>): string =>
  JSON.stringify([merchantId, payoutId])

const empty = (asked: RequestedPayout): ExpectedOutcome => ({
  asked,
  ends: [],
  events: [],
  state: null,
  kept: null,
  orders: [],
})

const latest = (events: readonly PublishedEvent[]): PublishedEvent | undefined =>
  events.reduce<PublishedEvent | undefined>((a, b) => (a && a.version >= b.version ? a : b), undefined)

/** How often the gateway paid it, over all its orders. */
export const timesPaid = ({ orders }: ExpectedOutcome): number =>
  orders.reduce((times, order) => times + order.timesPaid, 0)

/** In review: the only reason for a payout not to have ended. */
export const isInReview = ({ ends, state }: ExpectedOutcome): boolean =>
  ends.length === 0 && state === 'REVIEW'
