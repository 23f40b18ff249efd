import type { Instant } from '../../../src/platform/running/clock.ts'
import type { DrivenClock } from '../driven-clock.ts'
import { Scheduler } from '../scheduler.ts'
import type { Books } from '../state/books.ts'
import type { Merchant, Merchants } from '../state/merchants.ts'
import { idIn, type Sequence } from '../state/sequence.ts'
import type { Store } from '../state/store.ts'
import { feeOf, type PayoutTerms } from '../state/terms.ts'
import { behaviourOf, type CallbackVariant, type ResponseMode } from '../test-accounts.ts'
import type { CallbackSender } from '../wire/callbacks.ts'
import type { Deliveries, Delivery } from '../wire/deliveries.ts'
import type { Params } from '../wire/form.ts'
import type { RuleRefusal } from '../wire/rules.ts'
import { acceptOrder, afterDelivery, type Order, PROCESSING, SUCCESS, settle } from './order.ts'
import { agentpayOrderId, callbackFields } from './order-fields.ts'
import type { Orders } from './orders.ts'

/** The result of an apply: the sandbox has the order, refuses it, or plays a fault and has nothing. */
export type Applied =
  | { kind: 'taken'; order: Order; responseMode: ResponseMode }
  | { kind: 'refused'; refusal: RuleRefusal }
  | { kind: 'turned-away'; responseMode: ResponseMode }

const DUPLICATE: RuleRefusal = {
  retCode: 'DUPLICATE_ORDER',
  retMsg: 'mchOrderNo: there is an order with this number',
}
const SHORT: RuleRefusal = {
  retCode: 'BALANCE_SHORT',
  retMsg: 'the available balance does not cover amount and fee',
}
const TOO_FAST: RuleRefusal = { retCode: 'TOO_FAST', retMsg: 'too many requests: try again later' }

type PayoutParts = {
  store: Store
  orders: Orders
  deliveries: Deliveries
  sequence: Sequence
  books: Books
  merchants: Merchants
  sender: Pick<CallbackSender, 'send'>
  clock: DrivenClock
  terms: PayoutTerms
}

/** The life of payouts: accepted, settled, called back. Send any result only after a commit. */
export class Payouts {
  readonly #scheduler: Scheduler<Order>
  readonly #firstDeliveries = new Map<number, () => void>()
  readonly #parts: PayoutParts
  #stopped = false

  constructor(parts: PayoutParts) {
    this.#parts = parts
    this.#scheduler = new Scheduler(parts.clock, (due) => this.#advance(due))
    for (const order of parts.orders.open()) this.#scheduler.add(nextStep(order), order)
  }

  /** Accepts an order whose parameters keep the rules, or says why not. */
  apply(merchant: Merchant, params: Params, now: Instant): Applied {
    const { store, orders, sequence, books, terms } = this.#parts
    const { mchOrderNo = '', accountNo = '', extra = '', notifyUrl = '' } = params
    const amount = BigInt(params.amount ?? '')
    const present = orders.byNumber(merchant.id, mchOrderNo)
    if (present && merchant.dialect.duplicateApply === 'refused') {
      store.write(() => orders.countApply(present))
      return { kind: 'refused', refusal: DUPLICATE }
    }
    const behaviour = behaviourOf(accountNo)
    const { obstacle } = behaviour
    const tries = obstacle ? orders.tries(merchant.id, mchOrderNo) : 0
    if (obstacle && tries < obstacle.tries) {
      store.write(() => orders.countTry(merchant.id, mchOrderNo))
      return obstacle.kind === 'too-fast'
        ? { kind: 'refused', refusal: TOO_FAST }
        : { kind: 'turned-away', responseMode: { kind: obstacle.kind } }
    }
    const fee = feeOf(amount, terms.fees)
    if (!books.covers(merchant.id, { amount, fee })) return { kind: 'refused', refusal: SHORT }
    const order = acceptOrder(
      { id: sequence.next(), merchantId: merchant.id, mchOrderNo, amount, accountNo, extra, notifyUrl },
      { fee, behaviour, settleMs: terms.settleMs, tries },
      now,
    )
    store.write(() => {
      orders.add(order)
      books.freeze(merchant.id, order.id, order)
    })
    this.#scheduler.add(order.settleAt, order)
    return { kind: 'taken', order, responseMode: behaviour.responseMode }
  }

  /** The order that a query names; undefined if there is none, or the two numbers belong to different ones. */
  find(merchant: Merchant, params: Params): Order | undefined {
    const { orders } = this.#parts
    const { mchOrderNo, agentpayOrderId: platformNo } = params
    const order = mchOrderNo
      ? orders.byNumber(merchant.id, mchOrderNo)
      : orders.byId(idIn(platformNo ?? '', 'AP') ?? 0)
    if (order?.merchantId !== merchant.id) return undefined
    return platformNo && agentpayOrderId(order) !== platformNo ? undefined : order
  }

  /** Resolves after the first try of the order's first callback, whatever its result, or when aborted. */
  firstDelivery(order: Order, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#firstDeliveries.set(order.id, resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  /** Nothing more falls due; the next start repeats a callback that is being sent now. */
  stop(): void {
    this.#stopped = true
    this.#scheduler.stop()
  }

  #advance(due: Order[]): void {
    const { store, clock } = this.#parts
    const now = clock.now()
    const settled = due.filter(({ status }) => status === PROCESSING)
    if (settled.length > 0) {
      store.write(() => {
        for (const order of settled) this.#settle(order, now)
      })
    }
    // Waits until the end is in the file: otherwise the order could end differently after a crash.
    void store.committed().then(
      () => {
        for (const order of due) this.#deliver(order)
      },
      // Nothing more may be sent; every request gets SYSTEM_ERROR until a restart.
      () => undefined,
    )
  }

  #settle(order: Order, now: Instant): void {
    const { books, orders } = this.#parts
    settle(order, now)
    if (order.status === SUCCESS) books.pay(order.merchantId, order.id, order)
    else books.release(order.merchantId, order.id, order)
    orders.saveSettled(order)
  }

  #deliver(order: Order): void {
    const { sender, merchants } = this.#parts
    const callbackIndex = order.callbacks[order.callbackIndex] as CallbackVariant | undefined
    if (this.#stopped || callbackIndex === undefined) return
    const seal = {
      merchant: merchants.of(order),
      signed: callbackIndex === 'forgery' ? 'wrongly' : 'well',
    } as const
    void sender.send(order.notifyUrl, callbackFields(order, callbackIndex), seal).then((delivery) => {
      if (!this.#stopped) this.#delivered(order, delivery)
    })
  }

  #delivered(order: Order, delivery: Delivery): void {
    const { store, orders, deliveries, clock, terms } = this.#parts
    afterDelivery(order, delivery.acknowledged, terms.callbackRetries, clock.now())
    store.write(() => {
      orders.saveDelivered(order)
      deliveries.add(order.id, order.callbacksSent, delivery)
    })
    if (order.callbackAt !== null) this.#scheduler.add(order.callbackAt, order)
    this.#firstDeliveries.get(order.id)?.()
    this.#firstDeliveries.delete(order.id)
  }
}

const nextStep = (order: Order): Instant =>
  order.status === PROCESSING ? order.settleAt : (order.callbackAt ?? order.settleAt)
