import type { Clock } from '../platform/clock.ts'
import { pause } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/log.ts'
import { answerToStranger, signedAnswer, unsignedAnswer } from './answers.ts'
import type { Books } from './books.ts'
import type { Form, Params } from './form.ts'
import type { Manner } from './magic.ts'
import type { Merchant, Merchants } from './merchants.ts'
import type { Order } from './order.ts'
import { queryFields, takenFields } from './order-fields.ts'
import type { Payouts } from './payouts.ts'
import { checkApply, checkBalanceQuery, checkPayoutQuery, type Refusal } from './rules.ts'
import { isSignedBy, type Signable } from './sign.ts'
import type { Store } from './store.ts'

/** An apply that answers after its callback does so in the end even if the merchant never takes it. */
const LONGEST_CALLBACK_MS = 5_000

/** What goes back on the wire: an answer, or one of the faults that are none. */
export type Reply = { status: number; body: string } | 'hang' | 'reset'

/** `order`: the answer waits for the first callback of this order. */
type Said = { fields: Signable; manner: Manner; order?: Order }
type Operation = (merchant: Merchant, params: Params) => Said

const STRANGER: Refusal = { retCode: 'MERCHANT_NOT_FOUND', retMsg: 'mchId: no merchant has this number' }
const FORGED: Refusal = { retCode: 'SIGN_ERROR', retMsg: 'sign: is not the signature of these parameters' }
const NO_ORDER: Refusal = { retCode: 'ORDER_NOT_FOUND', retMsg: 'no order of this merchant has this number' }
const OUR_FAULT: Refusal = { retCode: 'SYSTEM_ERROR', retMsg: 'see the log of the sandbox' }
const PLAIN: Manner = { kind: 'plain' }

type Parts = {
  store: Store
  books: Books
  merchants: Merchants
  payouts: Payouts
  clock: Clock
  log: Logger
  /** How long every answer takes at least. */
  latencyMs: number
  signal: AbortSignal
}

/** The operations of the contract: who asks, whether it may, what is said, and when. */
export class Gateway {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Gateway contract, "Create payout order". */
  apply(form: Form): Promise<Reply> {
    return this.#answer(form, signedAnswer, (merchant, params) => this.#apply(merchant, params))
  }

  /** Gateway contract, "Query payout order". */
  queryPayout(form: Form): Promise<Reply> {
    return this.#answer(form, signedAnswer, (merchant, params) => {
      const refusal = checkPayoutQuery(params)
      if (refusal) return refuse(refusal)
      const order = this.#parts.payouts.find(merchant, params)
      return order ? { fields: queryFields(order), manner: PLAIN } : refuse(NO_ORDER)
    })
  }

  /** Gateway contract, "Balance query": the one answer without a signature. */
  queryBalance(form: Form): Promise<Reply> {
    return this.#answer(form, unsignedAnswer, (merchant, params) => {
      const refusal = checkBalanceQuery(params)
      return refusal ? refuse(refusal) : { fields: this.#balance(merchant), manner: PLAIN }
    })
  }

  async #answer(form: Form, write: typeof signedAnswer, operation: Operation): Promise<Reply> {
    const { store, merchants, clock, log, latencyMs, signal } = this.#parts
    const begun = clock.monotonic()
    const merchant = merchants.named(form.params.mchId ?? '')
    if (!merchant) return { status: 200, body: answerToStranger(STRANGER) }
    let said: Said
    try {
      const refusal = checkForm(form, merchant)
      said = refusal ? refuse(refusal) : operation(merchant, form.params)
      await store.committed()
      if (said.order) await this.#afterItsCallback(said.order)
    } catch (error) {
      log.error({ err: error }, 'an operation failed')
      return { status: 500, body: write(OUR_FAULT, merchant.key) }
    }
    const late = said.manner.kind === 'late' ? said.manner.ms : 0
    const wait = latencyMs + late - (clock.monotonic() - begun)
    if (wait > 0) await pause(wait, signal)
    return reply(said, write, merchant.key)
  }

  #apply(merchant: Merchant, params: Params): Said {
    const refusal = checkApply(params)
    if (refusal) return refuse(refusal)
    const applied = this.#parts.payouts.apply(merchant, params)
    switch (applied.kind) {
      case 'taken':
        return {
          fields: takenFields(applied.order),
          manner: applied.manner,
          ...(applied.manner.kind === 'after-callback' ? { order: applied.order } : {}),
        }
      case 'refused':
        return refuse(applied.refusal)
      case 'turned-away':
        return { fields: {}, manner: applied.manner }
    }
  }

  async #afterItsCallback(order: Order): Promise<void> {
    const patience = AbortSignal.any([AbortSignal.timeout(LONGEST_CALLBACK_MS), this.#parts.signal])
    await this.#parts.payouts.firstDelivery(order, patience)
  }

  #balance(merchant: Merchant): Signable {
    const { available, frozen, pending, unsettled } = this.#parts.books.balances(merchant.id)
    return {
      retCode: 'SUCCESS',
      retMsg: null,
      busNo: merchant.mchId,
      amount: available + frozen + pending + unsettled,
      frozenAmount: frozen,
      availableAmount: available,
      pendingAmount: pending,
      unsettledAmount: unsettled,
    }
  }
}

function checkForm({ params, repeated }: Form, { key }: Merchant): Refusal | undefined {
  const [name] = repeated
  if (name !== undefined) {
    // The answer is signed although nobody proved to know the key, so it repeats only what is harmless.
    const shown = /^\w{1,32}$/.test(name) ? name : 'a parameter'
    return { retCode: 'PARAM_ERROR', retMsg: `${shown}: was given more than once` }
  }
  return isSignedBy(params, key, params.sign ?? '') ? undefined : FORGED
}

const refuse = (refusal: Refusal): Said => ({ fields: refusal, manner: PLAIN })

function reply({ fields, manner }: Said, write: typeof signedAnswer, key: string): Reply {
  switch (manner.kind) {
    case 'plain':
    case 'late':
    case 'after-callback':
      return { status: 200, body: write(fields, key) }
    case 'bad-signature':
      return { status: 200, body: write(fields, `not ${key}`) }
    case 'http-500':
      return { status: 500, body: 'Internal Server Error' }
    case 'hang':
    case 'reset':
      return manner.kind
  }
}
