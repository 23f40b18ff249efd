import type { ConnectedAccounts } from '../gateway/accounts.ts'
import { readVouched } from '../gateway/callbacks/callback.ts'
import { KeptCallbacks } from '../ledger/callbacks/kept-callbacks.ts'
import { askAtAccounts } from '../ledger/callbacks/sql/lost-callbacks.ts'
import { createHttpServer, listen } from '../platform/http.ts'
import { every } from '../platform/postgres/pages.ts'
import { signing } from '../platform/postgres/postgres.ts'
import { Rounds } from '../platform/postgres/rounds.ts'
import { LagReport } from '../stages/outcomes/lag.ts'
import { payoutCallbackEndpoint } from '../stages/outcomes/outcomes.ts'
import { payoutPoller } from '../stages/outcomes/payout-poller.ts'
import { queriersOf } from './queriers.ts'
import type { Shared } from './shared.ts'
import { startPayinOutcomes } from './start-payins.ts'

/**
 * Strangers can reach this port. Filling it keeps callbacks out, nothing else, and queries make up for missing
 * callbacks.
 */
const MOST_CALLBACK_CONNECTIONS = 2_400

/** Others may put payouts in review that this process can ask about. */
const ASK_AT_ACCOUNTS_EVERY_MS = 24 * 3_600_000

export async function startOutcomes(shared: Shared): Promise<string> {
  const { config, safeguards, ledger, queryPolicies, gateways, metrics, lifecycle, clock, processId, log } =
    shared
  const counted = metrics.counter('evidence_total', 'Callbacks and queries about payouts, by outcome', [
    'source',
    'outcome',
  ])
  const outcomeDeps = { ledger, decisions: safeguards.decisions, queryPolicies, counted }
  const endpoint = payoutCallbackEndpoint({
    ...outcomeDeps,
    readers: new Map(
      [...gateways].map(([merchantId, accounts]) => [
        merchantId,
        (rawQuery: string) =>
          readVouched(accounts, (dialect, key) => safeguards.readCallback(rawQuery, dialect, key)),
      ]),
    ),
    clock,
    log,
    kept: new KeptCallbacks({ db: ledger.db, sealing: config.sealing, kind: 'payout' }),
    answered: metrics.counter('callbacks_total', 'Callbacks by the answer that payoutd gave', [
      'merchant',
      'answer',
    ]),
    took: metrics.seconds('callback_seconds', 'Time from the arrival of a callback to its commit', []),
  })
  const server = createHttpServer({ mostConnections: MOST_CALLBACK_CONNECTIONS })
  const turnedAway = metrics.counter(
    'callback_connections_turned_away_total',
    'Connections to the callback endpoint refused because it had too many open',
    [],
  )
  server.server.on('drop', () => turnedAway.inc())
  endpoint.routes(server)
  const payinEndpoint = startPayinOutcomes(shared, server)
  const url = await listen(server, config.publicAt)
  lifecycle.own('callback endpoints', async () => {
    await server.close()
    await Promise.all([endpoint.drain(), payinEndpoint.drain()])
  })
  lifecycle.loop('kept callbacks', () => endpoint.takeUpKept())
  lifecycle.loop('kept payin callbacks', () => payinEndpoint.takeUpKept())
  const lag = new LagReport({ endpoint, db: ledger.db, processId, log })
  lifecycle.loop('callback lag', () => lag.turn())

  const poller = payoutPoller({
    ...outcomeDeps,
    queriers: new Map([...gateways].map(([merchantId, accounts]) => [merchantId, payoutQueriers(accounts)])),
    presenceCheck: safeguards.openPresenceCheck(clock),
    log,
  })
  lifecycle.own('queries', () => poller.drain())
  lifecycle.loop('poller', () => poller.turn())
  lifecycle.loop('lost callbacks', (sign) => poller.queryLost(sign))
  const rounds = new Rounds<{ merchantId: string; accountIds: string[] }>()
  const accounts = [...gateways].map(([merchantId, all]) => ({
    merchantId,
    accountIds: all.map(({ accountId }) => accountId),
  }))
  lifecycle.loop('accounts that are back', async (sign) => {
    const db = signing(sign, ledger.db)
    let waitMs = ASK_AT_ACCOUNTS_EVERY_MS
    await rounds.go(
      accounts,
      (of) => every((page) => db.run(askAtAccounts, { ...of, ...page })),
      ({ merchantId }, err) => {
        log.error(
          { err, merchantId },
          'cannot look now for payouts whose account is back, will look again in a minute',
        )
        waitMs = 60_000
      },
    )
    return waitMs
  })
  return url
}

/** How to ask each account of a merchant about a payout. */
export const payoutQueriers = (accounts: ConnectedAccounts) =>
  queriersOf(accounts, (client, mchOrderNo) => client.query({ mchOrderNo }))
