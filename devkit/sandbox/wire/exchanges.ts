import type { Instant } from '../../../src/platform/running/clock.ts'
import type { Merchant } from '../state/merchants.ts'
import type { GatewayReply } from './answers.ts'
import type { Delivery } from './deliveries.ts'
import type { Form } from './form.ts'

/** A readable request, and its answer. `merchant` as it was then, keys and dialect too. */
export type ReceivedRequest = {
  kind: 'asked'
  at: Instant
  operation: string
  form: Form
  merchant: Merchant | undefined
  reply: GatewayReply
}

/** A callback, and what the merchant's server answered. */
export type RecordedCall = {
  kind: 'told'
  at: Instant
  notifyUrl: string
  fields: Readonly<Record<string, string>>
  signature: string
  merchant: Merchant
  delivery: Delivery
}

export type Exchange = ReceivedRequest | RecordedCall

const KEPT = 1000

/**
 * The last 1,000 exchanges, in memory and by reference: it processes nothing before somebody looks, so that keeping
 * one costs next to nothing.
 */
export class Exchanges {
  readonly #ring: Exchange[] = []
  #count = 0

  keep(exchange: Exchange): void {
    this.#ring[this.#count++ % KEPT] = exchange
  }

  /** The exchange of this number, counted from 1, if it is still kept. */
  numbered(number: number): Exchange | undefined {
    return number > this.#count - KEPT && number <= this.#count ? this.#ring[(number - 1) % KEPT] : undefined
  }

  /** Newest first, each with its number. */
  *latest(): Iterable<[number: number, exchange: Exchange]> {
    for (let number = this.#count; number > 0; number--) {
      const exchange = this.numbered(number)
      if (!exchange) return
      yield [number, exchange]
    }
  }
}
