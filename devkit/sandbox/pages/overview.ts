import type { HttpServer } from '../../../src/platform/http.ts'
import type { Clock } from '../../../src/platform/running/clock.ts'
import { payOrderId } from '../payins/payin-fields.ts'
import type { PayinRecords } from '../payins/payin-records.ts'
import { agentpayOrderId, utr } from '../payouts/order-fields.ts'
import type { Orders } from '../payouts/orders.ts'
import type { Books } from '../state/books.ts'
import type { Merchants } from '../state/merchants.ts'
import type { Store } from '../state/store.ts'
import type { Deliveries } from '../wire/deliveries.ts'
import type { Exchanges } from '../wire/exchanges.ts'
import { type OrderOnPage, overviewPage } from './overview-page.ts'

type OverviewParts = {
  store: Store
  merchants: Merchants
  books: Books
  orders: Orders
  records: PayinRecords
  deliveries: Deliveries
  exchanges: Exchanges
  clock: Clock
}

/** Per kind. */
const ORDERS_SHOWN = 50

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'"

/**
 * The page at `/`: merchants with their balances, the latest orders with their callbacks, and the last exchanges.
 * `?exchange=7` explains the signatures of the seventh, `?refresh=no` stops reloading.
 */
export function addOverview(server: HttpServer, parts: OverviewParts): void {
  const { store, merchants, books, exchanges, clock } = parts
  server.get<{ Querystring: { exchange?: string; refresh?: string } }>('/', async (request, reply) => {
    store.flush()
    const { exchange = '', refresh } = request.query
    const number = /^\d{1,15}$/.test(exchange) ? Number(exchange) : undefined
    const page = overviewPage({
      now: clock.now(),
      merchants: merchants.all().map((merchant) => ({ merchant, balances: books.balances(merchant.id) })),
      payouts: payouts(parts),
      payins: payins(parts),
      exchanges: exchanges.latest(),
      chosen: number === undefined ? undefined : { number, exchange: exchanges.numbered(number) },
      refreshes: refresh !== 'no',
    })
    return reply
      .header('content-security-policy', POLICY)
      .header('cache-control', 'no-store')
      .type('text/html; charset=utf-8')
      .send(page)
  })
}

const payouts = ({ orders, merchants, deliveries }: OverviewParts): OrderOnPage[] =>
  orders.latest(ORDERS_SHOWN).map((order) => ({
    mchId: merchants.of(order).mchId,
    mchOrderNo: order.mchOrderNo,
    platformNo: agentpayOrderId(order),
    amount: order.amount,
    status: order.status,
    utr: utr(order),
    account: order.accountMasked,
    deliveries: deliveries.about(order.id),
  }))

const payins = ({ records, merchants, deliveries }: OverviewParts): OrderOnPage[] =>
  records.latest(ORDERS_SHOWN).map((payin) => ({
    mchId: merchants.of(payin).mchId,
    mchOrderNo: payin.mchOrderNo,
    platformNo: payOrderId(payin),
    amount: payin.amount,
    status: payin.status,
    utr: payin.utr,
    deliveries: deliveries.about(payin.id),
  }))
