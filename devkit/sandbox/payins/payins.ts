import type { Instant } from '../../../src/platform/running/clock.ts'
import type { DrivenClock } from '../driven-clock.ts'
import type { Payments } from '../payouts/payments.ts'
import { Scheduler } from '../scheduler.ts'
import type { Books } from '../state/books.ts'
import type { Merchant } from '../state/merchants.ts'
import { type Sequence, utrOf } from '../state/sequence.ts'
import type { Store } from '../state/store.ts'
import type { PayinTerms } from '../state/terms.ts'
import type { Params } from '../wire/form.ts'
import type { RuleRefusal } from '../wire/rules.ts'
import { createPayin, failed, PAID, type Payin, paid, WAITING } from './payin.ts'
import { payOrderId } from './payin-fields.ts'
import type { PayinNotices } from './payin-notices.ts'
import type { PayinRecords } from './payin-records.ts'

/** The result of a request about a payin: the payin as it is now, or why nothing was done. */
export type PayinOutcome = { kind: 'done'; payin: Payin } | { kind: 'refused'; refusal: RuleRefusal }

const EXPIRED = 'The order expired before it was paid'
const DECLINED = 'The bank of the payer declined the payment'

const refused = (retCode: string, retMsg: string): PayinOutcome => ({
  kind: 'refused',
  refusal: { retCode, retMsg },
})

const ENDED = refused('ORDER_ENDED', 'the order has ended')

type PayinParts = {
  store: Store
  payins: PayinRecords
  payments: Payments
  books: Books
  sequence: Sequence
  notices: Pick<PayinNotices, 'schedule'>
  clock: DrivenClock
  terms: PayinTerms
}

/** The life of payins: accepted, paid or not, settled, recovered. Send any result only after a commit. */
export class Payins {
  readonly #parts: PayinParts
  readonly #scheduler: Scheduler<number>

  constructor(parts: PayinParts) {
    this.#parts = parts
    this.#scheduler = new Scheduler(parts.clock, (due) => this.#advance(due))
    for (const payin of parts.payins.open()) this.#plan(payin)
  }

  /** Accepts an order whose parameters keep the rules, or says why not. */
  create(merchant: Merchant, params: Params, now: Instant): PayinOutcome {
    const { store, payins, sequence, terms } = this.#parts
    const { mchOrderNo = '', notifyUrl = '', returnUrl } = params
    if (payins.byNumber(merchant.id, mchOrderNo)) {
      return refused('DUPLICATE_ORDER', 'mchOrderNo: there is an order with this number')
    }
    const amount = BigInt(params.amount ?? '')
    const wanted = { mchOrderNo, amount, notifyUrl, returnUrl: returnUrl || null }
    const payin = createPayin({ id: sequence.next(), merchantId: merchant.id, ...wanted }, terms, now)
    store.write(() => payins.add(payin))
    this.#plan(payin)
    return { kind: 'done', payin }
  }

  /** The payin that a query names; undefined if there is none, or the two numbers belong to different ones. */
  find(merchant: Merchant, params: Params): Payin | undefined {
    const { payins } = this.#parts
    const { mchOrderNo, payOrderId: platformNo } = params
    const payin = mchOrderNo
      ? payins.byNumber(merchant.id, mchOrderNo)
      : payins.byPlatformNo(platformNo ?? '')
    if (payin?.merchantId !== merchant.id) return undefined
    return platformNo && payOrderId(payin) !== platformNo ? undefined : payin
  }

  /** Marks a payin as paid by an unreported payment, even if it has failed or expired since. */
  recover(merchant: Merchant, payin: Payin, utr: string, now: Instant): PayinOutcome {
    const { store, payments, books } = this.#parts
    const payment = payments.byUtr(merchant.id, utr)
    if (payin.status === PAID) {
      return payin.utr === utr
        ? { kind: 'done', payin }
        : refused('ORDER_PAID', 'payOrderId: the order is paid, by another payment')
    }
    if (!payment) return refused('UTR_NOT_FOUND', 'channelPayNo: no payment has this UTR')
    if (payment.claimedBy !== null) return refused('UTR_USED', 'channelPayNo: another order has this payment')
    if (payment.amount !== payin.amount) {
      return refused('AMOUNT_MISMATCH', 'channelPayNo: the payment is of another amount than the order')
    }
    return store.write(() => {
      payments.claim(payment, payin.id)
      books.match(payin.merchantId, payin.id, payin)
      return this.#pay(payin, utr, now)
    })
  }

  /** The payer pays, and the gateway learns of it. */
  pay(payin: Payin): PayinOutcome {
    const { store, books, clock } = this.#parts
    if (payin.status !== WAITING) return ENDED
    return store.write(() => {
      const utr = this.#payment(payin, payin.id)
      books.collect(payin.merchantId, payin.id, payin)
      return this.#pay(payin, utr, clock.now())
    })
  }

  /** The payer pays, and the gateway does not learn for which order: only a recovery by UTR finds the money. */
  payUntold(payin: Payin): PayinOutcome {
    const { store, books } = this.#parts
    if (payin.status !== WAITING) return ENDED
    store.write(() => {
      this.#payment(payin, null)
      books.arrive(payin.merchantId, payin.id, payin.amount)
    })
    return { kind: 'done', payin }
  }

  /** The payer's bank declines. */
  decline(payin: Payin): PayinOutcome {
    return this.#fail(payin, DECLINED)
  }

  /** Ends the time to pay now. */
  expire(payin: Payin): PayinOutcome {
    return this.#fail(payin, EXPIRED)
  }

  /** Nothing more falls due. */
  stop(): void {
    this.#scheduler.stop()
  }

  #payment(payin: Payin, claimedBy: number | null): string {
    const { payments, sequence, clock } = this.#parts
    const { merchantId, amount } = payin
    const id = sequence.next()
    const madeAt = clock.now()
    const utr = utrOf(id, madeAt)
    payments.add({ id, merchantId, utr, amount, madeAt, madeFor: payin.id, claimedBy })
    return utr
  }

  #pay(payin: Payin, utr: string, now: Instant): PayinOutcome {
    return this.#save(paid(payin, utr, this.#parts.terms, now))
  }

  #fail(payin: Payin, errorMessage: string): PayinOutcome {
    const { store, clock } = this.#parts
    if (payin.status !== WAITING) return ENDED
    return store.write(() => this.#save(failed(payin, errorMessage, clock.now())))
  }

  #save(payin: Payin): PayinOutcome {
    const { payins, notices } = this.#parts
    payins.save(payin)
    this.#plan(payin)
    notices.schedule(payin)
    return { kind: 'done', payin }
  }

  #plan({ id, status, expiresAt, availableAt }: Payin): void {
    const next = status === WAITING ? expiresAt : availableAt
    if (next !== null) this.#scheduler.add(next, id)
  }

  #advance(due: number[]): void {
    const { payins, clock } = this.#parts
    const now = clock.now()
    for (const id of due) {
      const payin = payins.byId(id)
      if (payin?.status === WAITING && payin.expiresAt <= now) this.expire(payin)
      else if (payin && payin.availableAt !== null && payin.availableAt <= now) this.#settle(payin)
    }
  }

  #settle(payin: Payin): void {
    const { store, payins, books } = this.#parts
    store.write(() => {
      books.settle(payin.merchantId, payin.id, payin)
      payins.save({ ...payin, availableAt: null })
    })
  }
}
