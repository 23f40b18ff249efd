import { type Clock, systemClock } from '../platform/clock.ts'
import { listen } from '../platform/http.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { type Logger, silentLogger } from '../platform/log.ts'
import { Books } from './books.ts'
import { CallbackSender } from './callbacks.ts'
import { Gateway } from './gateway.ts'
import { addJudgeRoutes } from './judge.ts'
import { Merchants } from './merchants.ts'
import { Orders } from './orders.ts'
import { Payouts } from './payouts.ts'
import { createSandboxServer } from './server.ts'
import { Store } from './store.ts'
import { Totals } from './totals.ts'

/** How a sandbox is started. Only the state file and the merchants have no default. */
export type SandboxOptions = {
  /** SQLite file; made if it is not there. What it holds already is kept. */
  state: string
  merchants: readonly { mchId: string; key: string }[]
  host?: string
  /** 0, the default: any free port. */
  port?: number
  /** Paise that a merchant which is new to the state file begins with. */
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
  clock?: Clock
  log?: Logger
}

export type Sandbox = { url: string; merchants: string[]; stop(): Promise<void> }

/** What holds where nothing else is asked for. */
export const DEFAULTS = {
  host: '127.0.0.1',
  port: 0,
  balance: 100_000_000_00n,
  settleMs: 300,
  latencyMs: 0,
  callbackRetries: [60, 120, 180, 240, 300],
  feeFlat: 500n,
  feeBps: 0n,
} as const

/** Writes of this many milliseconds share one commit. */
const GROUP_MS = 2

/** Starts a gateway of its own and resolves once it listens. Payouts that a former run left go on. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { host, port, balance, latencyMs, settleMs, callbackRetries, feeFlat, feeBps } = {
    ...DEFAULTS,
    ...options,
  }
  const terms = { settleMs, callbackRetries, feeFlat, feeBps }
  const { clock = systemClock, log = silentLogger } = options
  const lifecycle = new Lifecycle(log)
  try {
    const store = new Store(options.state, GROUP_MS)
    lifecycle.own('store', async () => store.close())
    const books = new Books(store)
    const merchants = new Merchants(store, books, options.merchants, balance)
    store.flush()
    const orders = new Orders(store)
    const sender = new CallbackSender()
    lifecycle.own('callbacks', () => sender.stop())
    const payouts = new Payouts({ store, orders, books, merchants, sender, clock, terms })
    lifecycle.own('payouts', async () => payouts.stop())
    const { signal } = lifecycle
    const gateway = new Gateway({ store, books, merchants, payouts, clock, log, latencyMs, signal })
    const server = createSandboxServer(gateway, log)
    addJudgeRoutes(server, { store, orders, merchants, totals: new Totals(store) })
    lifecycle.own('server', () => server.close())
    const url = await listen(server, { host, port })
    return { url, merchants: merchants.names(), stop: () => lifecycle.stop() }
  } catch (error) {
    await lifecycle.stop()
    throw error
  }
}
