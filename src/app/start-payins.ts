import type { Config } from '../config/config.ts'
import type { Merchant } from '../config/merchants.ts'
import { parsePayinCallback, readVouched } from '../gateway/callbacks/callback.ts'
import { longestSendMs } from '../gateway/dialect/dialect.ts'
import { PresenceCheck } from '../gateway/presence-check.ts'
import { KeptCallbacks } from '../ledger/callbacks/kept-callbacks.ts'
import { proveKeys } from '../operators/key-proofs.ts'
import type { CollectDeps, Collector } from '../payins/collect.ts'
import { payinCallbackEndpoint } from '../payins/outcomes.ts'
import { payinPoller } from '../payins/poller.ts'
import type { HttpServer } from '../platform/http.ts'
import { silentLogger } from '../platform/log.ts'
import { systemClock } from '../platform/running/clock.ts'
import type { Lifecycle } from '../platform/running/lifecycle.ts'
import { callbackPath } from '../stages/outcomes/callback-endpoint.ts'
import { openLedger } from './ledger.ts'
import { queriersOf } from './queriers.ts'
import { connectGateways, keysOf, type Shared, urlOf } from './shared.ts'

/** Creates payins for every caller that requests one. The gateway calls back at `notifyAt`. */
export function collecting({
  config,
  ledger,
  gateways,
  clock,
  notifyAt,
  log,
}: Pick<Shared, 'config' | 'ledger' | 'gateways' | 'clock' | 'log'> & { notifyAt: string }): CollectDeps {
  const collectors = [...gateways].map(([merchantId, accounts]): [string, Collector] => {
    const [{ accountId, settingsHash, dialect, queryPolicy, client }] = accounts
    const { deadlineMs } = config.merchants.get(merchantId) as Merchant
    const notifyUrl = notifyAt + callbackPath('payin', merchantId)
    const collector: Collector = {
      accountId,
      settingsHash,
      leaseMs: dialect.leaseMs,
      sendTimeoutMs: longestSendMs(dialect.sendTimeoutMs),
      expireMs: deadlineMs,
      queryPolicy,
      create: (order, mayStillSend) => client.payinCreate({ ...order, notifyUrl }, { mayStillSend }),
      recover: new Map(accounts.map(({ accountId, client }) => [accountId, client.payinRecover])),
    }
    return [merchantId, collector]
  })
  return { ledger, collectors: new Map(collectors), fingerprintKey: config.fingerprintKey, clock, log }
}

/** The same for a command that runs beside the processes. The lifecycle owns the ledger and the gateway connections. */
export async function openCollecting(config: Config, lifecycle: Lifecycle): Promise<CollectDeps> {
  const { ledger } = await openLedger(config, lifecycle)
  await proveKeys(ledger.db, keysOf(config))
  const clock = systemClock
  const gateways = await connectGateways(config, ledger, lifecycle, clock, silentLogger, lifecycle.signal)
  const notifyAt = config.publicUrl ?? urlOf(config.publicAt)
  return collecting({ config, ledger, gateways, clock, notifyAt, log: silentLogger })
}

/** The payins' callback endpoint, on the same port, and their poller. */
export function startPayinOutcomes(shared: Shared, server: HttpServer) {
  const { config, ledger, gateways, metrics, lifecycle, clock, log } = shared
  const outcomeDeps = {
    ledger,
    terms: new Map(
      [...gateways].map(([merchantId, accounts]) => {
        const mchIds = new Map(accounts.map(({ accountId, mchId }) => [accountId, mchId]))
        return [merchantId, { mchIds, queryPolicy: accounts[0].queryPolicy }]
      }),
    ),
    counted: metrics.counter('payin_evidence_total', 'Callbacks and queries about payins, by outcome', [
      'source',
      'outcome',
    ]),
    log,
  }
  const endpoint = payinCallbackEndpoint({
    ...outcomeDeps,
    readers: new Map(
      [...gateways].map(([merchantId, accounts]) => [
        merchantId,
        (rawQuery: string) =>
          readVouched(accounts, (dialect, key) => parsePayinCallback(rawQuery, dialect, key)),
      ]),
    ),
    kept: new KeptCallbacks({ db: ledger.db, sealing: config.sealing, kind: 'payin' }),
    clock,
    answered: metrics.counter('payin_callbacks_total', 'Payin callbacks by the answer that payoutd gave', [
      'merchant',
      'answer',
    ]),
    took: metrics.seconds(
      'payin_callback_seconds',
      'Time from the arrival of a payin callback to its commit',
      [],
    ),
  })
  endpoint.routes(server)
  const poller = payinPoller({
    ...outcomeDeps,
    queriers: new Map(
      [...gateways].map(([merchantId, accounts]) => [
        merchantId,
        queriersOf(accounts, (client, mchOrderNo) =>
          client.payinQuery({ mchOrderNo }, { executeNotify: false }),
        ),
      ]),
    ),
    presenceCheck: new PresenceCheck(clock),
  })
  lifecycle.own('payin queries', () => poller.drain())
  lifecycle.loop('payin poller', () => poller.turn())
  lifecycle.loop('lost payin callbacks', (sign) => poller.queryLost(sign))
  return endpoint
}
