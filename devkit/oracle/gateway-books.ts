import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { z } from 'zod'
import { type Paise, paise } from '../../src/domain/money.ts'

const money = z
  .string()
  .regex(/^-?\d+$/)
  .transform((text): Paise => paise(BigInt(text)))

const orderLine = z.object({
  mchOrderNo: z.string(),
  agentpayOrderId: z.string(),
  amount: money,
  fee: money,
  /** 1 processing, 2 success, 3 failed. */
  status: z.int(),
  timesPaid: z.int(),
  applyCalls: z.int(),
  utr: z.string().nullable(),
  payee: z.string(),
  callbacksSent: z.int(),
})
/** One order as the sandbox keeps it (devkit/sandbox/README.md, "The books"). */
export type GatewayOrder = z.output<typeof orderLine>

const booksAnswer = z.object({
  accounts: z.object({ paidOut: money, fees: money }),
  balancesAgree: z.boolean(),
  orders: z.object({ callbacksOutstanding: z.int() }),
  everything: z.object({ sum: money }),
})
/** What the sandbox's books add up to for one merchant, in paise. */
export type GatewayBooks = z.output<typeof booksAnswer>

/** The sandbox's own view of one merchant, to check payoutd's reports against. */
export class Gateway {
  readonly #baseUrl: string
  readonly #mchId: string

  constructor(baseUrl: string, mchId: string) {
    this.#baseUrl = baseUrl
    this.#mchId = mchId
  }

  /** Throws if the sandbox does not answer. */
  async books(): Promise<GatewayBooks> {
    return booksAnswer.parse(await (await this.#get('books')).json())
  }

  /** Every order of the merchant, in order of acceptance. Throws if the sandbox does not answer. */
  async orders(): Promise<GatewayOrder[]> {
    const { body } = await this.#get('orders')
    const orders: GatewayOrder[] = []
    if (!body) return orders
    for await (const line of createInterface({ input: Readable.fromWeb(body as ReadableStream) })) {
      orders.push(orderLine.parse(JSON.parse(line)))
    }
    return orders
  }

  async #get(what: 'books' | 'orders'): Promise<Response> {
    const response = await fetch(`${this.#baseUrl}/_sandbox/${what}?mchId=${encodeURIComponent(this.#mchId)}`)
    if (!response.ok) throw new Error(`the gateway's ${what} cannot be read: HTTP ${response.status}`)
    return response
  }
}
