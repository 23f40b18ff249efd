import { Readable } from 'node:stream'
import type { HttpServer } from '../../src/platform/http.ts'
import type { SandboxTotals } from './pages/totals.ts'
import { payOrderId } from './payins/payin-fields.ts'
import { payinLine } from './payins/payin-line.ts'
import type { PayinRecords } from './payins/payin-records.ts'
import type { Order } from './payouts/order.ts'
import { agentpayOrderId, utr } from './payouts/order-fields.ts'
import type { Orders } from './payouts/orders.ts'
import type { Payments } from './payouts/payments.ts'
import type { Merchant, Merchants } from './state/merchants.ts'
import { idIn } from './state/sequence.ts'
import type { Store } from './state/store.ts'
import type { Deliveries } from './wire/deliveries.ts'

type InspectionParts = {
  store: Store
  orders: Orders
  records: PayinRecords
  payments: Payments
  deliveries: Deliveries
  merchants: Merchants
  totals: SandboxTotals
}

/** Rows read at a time: reading a million orders must not hold up the payouts. */
const PAGE = 500

/**
 * Reports for a checker: the books of a merchant, every order with its callbacks, and whether the sandbox is well,
 * which it is not once it could not write its file. All amounts are strings of paise.
 */
export function addInspectionRoutes(server: HttpServer, parts: InspectionParts): void {
  const { store, orders, records, payments, merchants, totals } = parts

  /** Each report about a merchant, by the last part of the path. */
  const answers: Record<string, (merchant: Merchant, order: string) => unknown> = {
    books: ({ id, mchId }) => ({ mchId, ...totals.of(id) }),
    orders: ({ id }) => lines((after) => orders.page(id, after, PAGE), orderLine, store),
    payins: ({ id }) =>
      lines(
        (after) => records.page(id, after, PAGE),
        (payin) => payinLine(payin, payments),
        store,
      ),
    deliveries: (merchant, order) => deliveriesOf(merchant, order, parts),
  }

  server.get('/healthz', async () => {
    await store.committed()
    return { status: 'ok' }
  })

  for (const [name, answer] of Object.entries(answers)) {
    server.get<{ Querystring: { mchId?: string; order?: string } }>(
      `/_sandbox/${name}`,
      async (request, reply) => {
        const { mchId = '', order = '' } = request.query
        const merchant = merchants.named(mchId)
        if (!merchant) return reply.code(404).send({ error: 'mchId: no merchant has this number' })
        store.flush()
        const said = answer(merchant, order)
        if (said instanceof Readable) reply.type('application/x-ndjson; charset=utf-8')
        return said
      },
    )
  }
}

/** Every record as a line of JSON. `page` reads the next ones, after the id of the last. */
function lines<T extends { id: number }>(
  page: (afterId: number) => T[],
  line: (record: T) => object,
  store: Store,
): Readable {
  async function* pages(): AsyncGenerator<string> {
    let last = 0
    for (;;) {
      store.flush()
      const records = page(last)
      if (records.length === 0) return
      last = records.at(-1)?.id ?? last
      yield records.map((record) => `${JSON.stringify(line(record))}\n`).join('')
    }
  }
  return Readable.from(pages())
}

/** Callbacks about a merchant's order of this number, its own or the platform's: payouts first. */
function deliveriesOf({ id }: Merchant, number: string, { orders, records, deliveries }: InspectionParts) {
  const payouts = [orders.byNumber(id, number), orders.byId(idIn(number, 'AP') ?? 0)]
  const payins = [records.byNumber(id, number), records.byPlatformNo(number)]
  const found = [
    ...payouts.flatMap((order) => (order ? [{ order, platformNo: agentpayOrderId(order) }] : [])),
    ...payins.flatMap((order) => (order ? [{ order, platformNo: payOrderId(order) }] : [])),
  ]
  return found
    .filter(({ order }) => order.merchantId === id)
    .flatMap(({ order, platformNo }) =>
      deliveries.about(order.id).map((delivery) => ({
        mchOrderNo: order.mchOrderNo,
        orderId: platformNo,
        ...delivery,
      })),
    )
}

const orderLine = (order: Order) => ({
  mchOrderNo: order.mchOrderNo,
  agentpayOrderId: agentpayOrderId(order),
  amount: String(order.amount),
  fee: String(order.fee),
  status: order.status,
  timesPaid: order.timesPaid,
  applyCalls: order.applyCalls,
  utr: utr(order),
  accountNoMasked: order.accountMasked,
  payee: order.payee,
  callbacksSent: order.callbacksSent,
  callbacksAcknowledged: order.callbacksAcknowledged,
})
