import { Readable } from 'node:stream'
import type { HttpServer } from '../platform/http.ts'
import type { Merchant, Merchants } from './merchants.ts'
import type { Order } from './order.ts'
import { agentpayOrderId, utr } from './order-fields.ts'
import type { Orders } from './orders.ts'
import type { Store } from './store.ts'
import type { Totals } from './totals.ts'

type Parts = { store: Store; orders: Orders; merchants: Merchants; totals: Totals }

/** Rows read at a time: a judge who reads a million orders must not hold up the payouts. */
const PAGE = 500

/**
 * What a judge may ask: the books of a merchant, every order it has, and whether the sandbox is well, which it
 * is not once its file could not be written. All amounts are strings of paise.
 */
export function addJudgeRoutes(server: HttpServer, { store, orders, merchants, totals }: Parts): void {
  server.get('/healthz', async () => {
    await store.committed()
    return { status: 'ok' }
  })

  server.get<{ Querystring: { mchId?: string } }>('/_sandbox/books', async (request, reply) => {
    const merchant = merchants.named(request.query.mchId ?? '')
    if (!merchant) return reply.code(404).send({ error: 'mchId: no merchant has this number' })
    store.flush()
    return { mchId: merchant.mchId, ...totals.of(merchant.id) }
  })

  server.get<{ Querystring: { mchId?: string } }>('/_sandbox/orders', async (request, reply) => {
    const merchant = merchants.named(request.query.mchId ?? '')
    if (!merchant) return reply.code(404).send({ error: 'mchId: no merchant has this number' })
    reply.header('content-type', 'application/x-ndjson; charset=utf-8')
    return reply.send(Readable.from(lines(merchant, orders, store)))
  })
}

async function* lines(merchant: Merchant, orders: Orders, store: Store): AsyncGenerator<string> {
  let last = 0
  for (;;) {
    store.flush()
    const page = orders.page(merchant.id, last, PAGE)
    if (page.length === 0) return
    last = page.at(-1)?.id ?? last
    yield page.map((order) => `${JSON.stringify(orderLine(order))}\n`).join('')
  }
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
  callbacksSent: order.callbacksSent,
  callbacksAcknowledged: order.callbacksAcknowledged,
})
