import type { ConnectedAccount } from '../gateway/accounts.ts'
import { readVouched } from '../gateway/callbacks/callback.ts'
import { longestSendMs } from '../gateway/dialect/dialect.ts'
import { KeptCallbacks } from '../ledger/callbacks/kept-callbacks.ts'
import { createHttpServer, listen } from '../platform/http.ts'
import { CallbackDoor } from '../stages/outcomes/door.ts'
import { LagReport } from '../stages/outcomes/lag.ts'
import { type Asker, Poller } from '../stages/outcomes/poller.ts'
import { startPayinOutcomes } from './payins.ts'
import type { Shared } from './shared.ts'

/** The door faces strangers: whoever fills it keeps callbacks out, which queries make up for, and nothing else. */
const MOST_CALLBACK_CONNECTIONS = 500

export async function startOutcomes(shared: Shared): Promise<string> {
  const { config, safeguards, ledger, tables, gateways, metrics, lifecycle, clock, processId, log } = shared
  const counted = metrics.counter('evidence_total', 'What callbacks and queries came to', [
    'source',
    'outcome',
  ])
  const settlement = { ledger, judge: safeguards.judge, tables, counted }
  const door = new CallbackDoor({
    ...settlement,
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
    answered: metrics.counter('callbacks_total', 'Callbacks by what they were answered', [
      'merchant',
      'answer',
    ]),
    took: metrics.seconds('callback_seconds', 'From the arrival of a callback to its commit', []),
  })
  const server = createHttpServer({ mostConnections: MOST_CALLBACK_CONNECTIONS })
  const turnedAway = metrics.counter(
    'callback_connections_turned_away_total',
    'Connections to the callback door beyond those that it takes at once',
    [],
  )
  server.server.on('drop', () => turnedAway.inc())
  door.routes(server)
  const payinDoor = startPayinOutcomes(shared, server)
  const url = await listen(server, config.publicAt)
  lifecycle.own('callback doors', async () => {
    await server.close()
    await Promise.all([door.drain(), payinDoor.drain()])
  })
  lifecycle.loop('kept callbacks', () => door.takeUpKept())
  lifecycle.loop('kept payin callbacks', () => payinDoor.takeUpKept())
  const lag = new LagReport({ door, db: ledger.db, processId, log })
  lifecycle.loop('callback lag', () => lag.turn())

  const poller = new Poller({
    ...settlement,
    askers: new Map(
      [...gateways].map(([merchantId, [current, ...former]]) => [
        merchantId,
        [askerOf(current), ...former.map(askerOf)],
      ]),
    ),
    control: safeguards.openControl(clock),
    log,
  })
  lifecycle.own('queries', () => poller.drain())
  lifecycle.loop('poller', () => poller.turn())
  lifecycle.loop('lost callbacks', (sign) => poller.askAboutLost(sign))
  return url
}

export const askerOf = ({ accountId, settingsHash, table, dialect, client }: ConnectedAccount): Asker => ({
  accountId,
  settingsHash,
  table,
  query: (mchOrderNo) => client.query({ mchOrderNo }),
  timeoutMs: longestSendMs(dialect.sendTimeoutMs),
})
