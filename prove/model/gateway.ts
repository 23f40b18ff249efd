import type { ApplyAnswer, QueryAnswer } from '../../src/payout/answers.ts'
import type { OrderReport } from '../../src/payout/evidence.ts'
import type { Instant } from '../../src/payout/instant.ts'
import { type Paise, paise } from '../../src/payout/money.ts'
import { FEE, type Rules } from './rules.ts'

export type Order = {
  mchOrderNo: string
  agentpayOrderId: string
  amount: Paise
  status: 'processing' | 'success' | 'failed'
  timesPaid: number
  /** Paid, and the money came back: the gateway calls it failed from then on. */
  returned: boolean
  findableFrom: Instant
  /** Its apply left after its lease had ended, which nobody can rule out (docs/design.md). */
  late: boolean
}

/** What the gateway makes of an apply that it does not have yet. */
export type Verdict = 'accept' | 'pay at once' | 'refuse' | 'too fast' | 'break down'

export type Apply = { mchOrderNo: string; amount: Paise; late: boolean }

export const UTR = '632611200001'
const exchange = {}
export const unanswered = (reason: 'timeout' | 'http-status' | 'unparsable' | 'unlisted-code') =>
  ({ kind: 'unknown', reason, exchange }) as const

/** The gateway as its contract describes it, with true books. It shares no code with payoutd. */
export class Gateway {
  readonly orders: Order[] = []
  /** Signed statements about orders on their way to the callback door. */
  callbacks: OrderReport[] = []
  /** Every statement about an end that it ever signed or gave as an answer: `PORDER success`. */
  readonly said = new Set<string>()
  /** Order numbers of which it saw an apply. */
  readonly seen = new Set<string>()
  /** Order numbers that it refused, once and for all. */
  readonly refused = new Set<string>()
  available: Paise = paise(120_000)
  /** Paise that went off the balance without payoutd having to know. */
  unforeseen = 0n
  readonly #rules: Rules

  constructor(rules: Rules) {
    this.#rules = rules
  }

  of(mchOrderNo: string | null): Order[] {
    return this.orders.filter((order) => order.mchOrderNo === mchOrderNo)
  }

  apply({ mchOrderNo, amount, late }: Apply, verdict: Verdict, now: Instant): ApplyAnswer {
    this.seen.add(mchOrderNo)
    if (this.#rules.duplicateApply === 'refused' && this.of(mchOrderNo).length > 0) {
      return { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }
    }
    if (this.refused.has(mchOrderNo) || verdict === 'refuse') return this.#refuse(mchOrderNo)
    if (verdict === 'break down') return unanswered('http-status')
    if (verdict === 'too fast') return turnedAway('TOO_FAST')
    if (amount + FEE > this.available) return turnedAway('BALANCE_SHORT')
    this.available = paise(this.available - amount - FEE)
    const order: Order = {
      mchOrderNo,
      agentpayOrderId: `AP${this.orders.length + 1}`,
      amount,
      status: 'processing',
      timesPaid: 0,
      returned: false,
      findableFrom: now,
      late,
    }
    this.orders.push(order)
    if (verdict === 'pay at once') this.pay(order)
    const { agentpayOrderId, status } = order
    return { kind: 'accepted', agentpayOrderId, fee: FEE, status, exchange }
  }

  query(mchOrderNo: string, now: Instant): QueryAnswer {
    const order = this.of(mchOrderNo).findLast(({ findableFrom }) => findableFrom <= now)
    return order ? { kind: 'found', report: this.report(order) } : { kind: 'not-found', exchange }
  }

  pay(order: Order): void {
    order.status = 'success'
    order.timesPaid++
    this.#call(order)
  }

  fail(order: Order): void {
    order.status = 'failed'
    this.available = paise(this.available + order.amount + FEE)
    this.#call(order)
  }

  giveBack(order: Order): void {
    order.returned = true
    this.fail(order)
  }

  /** What it says of an order now, signed. */
  report({ mchOrderNo, agentpayOrderId, amount, status }: Order): OrderReport {
    this.said.add(`${mchOrderNo} ${status}`)
    const utr = status === 'success' ? UTR : null
    const errorMessage = status === 'failed' ? 'account closed' : null
    return { mchOrderNo, agentpayOrderId, status, amount, fee: FEE, utr, errorMessage, exchange }
  }

  #call(order: Order): void {
    this.callbacks.push(this.report(order))
  }

  #refuse(mchOrderNo: string): ApplyAnswer {
    this.refused.add(mchOrderNo)
    this.said.add(`${mchOrderNo} failed`)
    return { kind: 'refused', code: 'IFSC_INVALID', message: 'no such branch', exchange }
  }
}

const turnedAway = (code: string): ApplyAnswer => ({
  kind: 'retry-later',
  code,
  message: '',
  balanceShort: code === 'BALANCE_SHORT',
  exchange,
})
