import { Gateway, type GatewayBooks, type GatewayOrder } from '../../devkit/oracle/gateway-books.ts'
import { paise } from '../../src/domain/money.ts'
import type { WorldMerchant } from './merchants.ts'

/** The books of some merchants at one sandbox, combined into one. */
export class Gateways {
  readonly #books: readonly { merchant: WorldMerchant; gateway: Gateway }[]
  readonly #owners = new Map<string, WorldMerchant>()

  constructor(sandboxUrl: string, merchants: readonly WorldMerchant[]) {
    this.#books = merchants
      .flatMap((each) => (each.former ? [each, { ...each, ...each.former }] : [each]))
      .map((merchant) => ({ merchant, gateway: new Gateway(sandboxUrl, merchant.mchId) }))
  }

  async orders(): Promise<GatewayOrder[]> {
    const all: GatewayOrder[] = []
    for (const { merchant, gateway } of this.#books) {
      const orders = await gateway.orders()
      for (const { mchOrderNo } of orders) this.#owners.set(mchOrderNo, merchant)
      all.push(...orders)
    }
    return all
  }

  /** The merchant of an order that `orders` has returned; the first merchant if unknown. */
  ownerOf(mchOrderNo: string | undefined): WorldMerchant {
    return this.#owners.get(mchOrderNo ?? '') ?? (this.#books[0]?.merchant as WorldMerchant)
  }

  async books(): Promise<GatewayBooks> {
    const all = await Promise.all(this.#books.map(({ gateway }) => gateway.books()))
    const [first] = all as [GatewayBooks]
    return {
      accounts: {
        paidOut: paise(all.reduce((sum, { accounts }) => sum + accounts.paidOut, 0n)),
        fees: paise(all.reduce((sum, { accounts }) => sum + accounts.fees, 0n)),
      },
      balancesAgree: all.every(({ balancesAgree }) => balancesAgree),
      orders: {
        callbacksOutstanding: all.reduce((sum, { orders }) => sum + orders.callbacksOutstanding, 0),
      },
      everything: first.everything,
    }
  }
}
