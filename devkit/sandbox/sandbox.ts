import { listen } from '../../src/platform/http.ts'
import { type Logger, silentLogger } from '../../src/platform/log.ts'
import { type Clock, systemClock } from '../../src/platform/running/clock.ts'
import { Lifecycle } from '../../src/platform/running/lifecycle.ts'
import { addAdminRoutes } from './admin.ts'
import { DrivenClock } from './driven-clock.ts'
import { Faults } from './faults.ts'
import { Gateway } from './gateway.ts'
import { addInspectionRoutes } from './inspection.ts'
import { createOperations } from './operations.ts'
import { addOverview } from './pages/overview.ts'
import { SandboxTotals } from './pages/totals.ts'
import { addCheckoutRoutes, checkoutPath } from './payins/checkout.ts'
import { PayinNotices } from './payins/payin-notices.ts'
import { PayinRecords } from './payins/payin-records.ts'
import { Payins } from './payins/payins.ts'
import { Orders } from './payouts/orders.ts'
import { Payments } from './payouts/payments.ts'
import { Payouts } from './payouts/payouts.ts'
import { createSandboxServer } from './server.ts'
import { Books } from './state/books.ts'
import { Merchants, type WantedMerchant } from './state/merchants.ts'
import { Sequence } from './state/sequence.ts'
import { Store } from './state/store.ts'
import { CallbackSender } from './wire/callbacks.ts'
import { Deliveries } from './wire/deliveries.ts'
import { dialectJson, type WantedDialect } from './wire/dialect.ts'
import { Exchanges } from './wire/exchanges.ts'
import { FaultySender } from './wire/faulty-sender.ts'

/** How a sandbox is started. Only the state file and the merchants have no default. */
export type SandboxOptions = {
  /** SQLite file; created if missing. Existing content stays. */
  state: string
  merchants: readonly WantedMerchant[]
  host?: string
  /** 0, the default: any free port. */
  port?: number
  /** How browsers reach the sandbox, if that differs from the listening address. */
  publicUrl?: string | undefined
  /** For merchants without their own dialect. */
  dialect?: WantedDialect | undefined
  /** Paise with which a merchant new to the state file begins. */
  balance?: bigint
  /** Milliseconds from acceptance to the end of a payout. */
  settleMs?: number
  /** Milliseconds that every answer takes at least. */
  latencyMs?: number
  /** Pauses before a callback is repeated, in seconds. */
  callbackRetries?: readonly number[]
  /** Paise per payout. */
  feeFlat?: bigint
  /** Basis points of the amount, added to the flat fee. */
  feeBps?: bigint
  /** Milliseconds in which a payin must be paid. */
  payinExpiryMs?: number
  /** Milliseconds from the payment of a payin until its money is available. */
  payinSettleMs?: number
  /** Paise per payin. */
  payinFeeFlat?: bigint
  /** Basis points of the amount, added to the flat fee. */
  payinFeeBps?: bigint
  clock?: Clock
  log?: Logger
}

export type Sandbox = { url: string; merchants: string[]; stop(): Promise<void> }

/** The values used unless the options say otherwise. */
export const DEFAULTS = {
  host: '127.0.0.1',
  port: 0,
  balance: 100_000_000_00n,
  settleMs: 300,
  latencyMs: 0,
  callbackRetries: [60, 120, 180, 240, 300],
  feeFlat: 500n,
  feeBps: 0n,
  payinExpiryMs: 900_000,
  payinSettleMs: 5_000,
  payinFeeFlat: 0n,
  payinFeeBps: 100n,
} as const

/** Writes within this many milliseconds share one commit. */
const GROUP_MS = 2

/** Starts a gateway and resolves once it listens. It goes on with what an earlier run left open. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const settings = { ...DEFAULTS, ...options }
  const { host, port, latencyMs, callbackRetries } = settings
  const { log = silentLogger } = options
  const dialect = dialectJson.parse(options.dialect ?? {})
  const clock = new DrivenClock(options.clock ?? systemClock)
  const lifecycle = new Lifecycle(log)
  const { signal } = lifecycle
  let publicUrl = options.publicUrl
  try {
    const store = new Store(options.state, GROUP_MS)
    lifecycle.own('store', async () => store.close())
    const books = new Books(store)
    const merchants = new Merchants({ store, books, openingBalance: settings.balance, dialect })
    for (const merchant of options.merchants) merchants.put(merchant)
    store.flush()

    const sequence = new Sequence(store)
    const orders = new Orders(store)
    const records = new PayinRecords(store)
    const payments = new Payments(store)
    const deliveries = new Deliveries(store)
    const exchanges = new Exchanges()
    const faults = new Faults()
    const callbacks = new CallbackSender(clock, exchanges)
    lifecycle.own('callbacks', () => callbacks.stop())
    const sender = new FaultySender(callbacks, faults, clock)

    const kept = { store, sequence, books, merchants, deliveries, sender, clock }
    const payouts = new Payouts({
      ...kept,
      orders,
      terms: {
        fees: { flat: settings.feeFlat, bps: settings.feeBps },
        settleMs: settings.settleMs,
        callbackRetries,
      },
    })
    lifecycle.own('payouts', async () => payouts.stop())
    const notices = new PayinNotices({ ...kept, payins: records, retries: callbackRetries })
    lifecycle.own('payin callbacks', async () => notices.stop())
    const payins = new Payins({
      ...kept,
      payins: records,
      payments,
      notices,
      terms: {
        fees: { flat: settings.payinFeeFlat, bps: settings.payinFeeBps },
        expiryMs: settings.payinExpiryMs,
        settleMs: settings.payinSettleMs,
      },
    })
    lifecycle.own('payins', async () => payins.stop())

    const payUrl = (payOrderId: string) => `${publicUrl}${checkoutPath(payOrderId)}`
    const operations = createOperations({ payouts, payins, notices, books, payUrl })
    const gateway = new Gateway({
      store,
      merchants,
      dialect,
      operations,
      payouts,
      exchanges,
      faults,
      clock,
      log,
      latencyMs,
      signal,
    })
    const server = createSandboxServer(gateway, log)
    addCheckoutRoutes(server, { store, merchants, payins, records, payments, clock })
    addInspectionRoutes(server, {
      store,
      orders,
      records,
      payments,
      deliveries,
      merchants,
      totals: new SandboxTotals(store),
    })
    addOverview(server, { store, merchants, books, orders, records, deliveries, exchanges, clock })
    addAdminRoutes(server, { store, merchants, faults, clock })
    lifecycle.own('server', () => server.close())
    const url = await listen(server, { host, port })
    publicUrl ??= url
    return { url, merchants: merchants.all().map(({ mchId }) => mchId), stop: () => lifecycle.stop() }
  } catch (error) {
    await lifecycle.stop()
    throw error
  }
}
