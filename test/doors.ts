import type { TestContext } from 'node:test'
import { parsePayinCallback, parsePayoutCallback } from '../src/gateway/callback.ts'
import { signature } from '../src/gateway/sign.ts'
import { KeptCallbacks } from '../src/ledger/kept-callbacks.ts'
import { PayinDoor, payinCallbackPath } from '../src/payins/door.ts'
import { command } from '../src/payout/command.fixture.ts'
import { JUDGEMENT } from '../src/payout/judgement.ts'
import { systemClock } from '../src/platform/clock.ts'
import { createHttpServer, listen } from '../src/platform/http.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { sql } from '../src/platform/postgres.ts'
import { CallbackDoor, callbackPath } from '../src/settlement/door.ts'
import { ACCOUNT, accepted, payoutsOf, readerOf } from './ledger.ts'
import { payinLedger, storedPayins, TABLE } from './payins.ts'

const send = sql<{ accountId: string }>`
  update payouts set state = 'processing', attempt = 1, ready = false, account_id = ${'accountId'}`

/**
 * Both callback doors on a port, before a ledger with one payout that was sent and one open payin of ₹500. `sign` makes the
 * query string of a callback; `fields` are those of a payment of each.
 */
export async function openDoors(t: TestContext) {
  const { ledger, config, settlement, create } = await payinLedger(t)
  const { payinId, payOrderId } = await create('order-7')
  await accepted(ledger, config, [command('p1')])
  await ledger.db.run(send, ACCOUNT)
  const [payout] = await payoutsOf(ledger)
  const merchant = config.merchants.get('acme')
  if (!payout || !merchant) throw new Error('there is no payout')
  const { dialect, key } = merchant
  const metrics = new Metrics()
  const answered = metrics.counter('callbacks_total', 'test', ['merchant', 'answer'])
  const server = createHttpServer()
  const payoutReaders = new Map([['acme', readerOf(merchant, parsePayoutCallback)]])
  const payinReaders = new Map([['acme', readerOf(merchant, parsePayinCallback)]])
  const keeping = { db: ledger.db, sealing: config.sealing }
  const payouts = new CallbackDoor({
    ledger,
    judge: JUDGEMENT,
    tables: new Map([['acme', TABLE]]),
    counted: settlement.counted,
    readers: payoutReaders,
    kept: new KeptCallbacks({ ...keeping, kind: 'payout' }),
    clock: systemClock,
    log: silentLogger,
    answered,
    took: metrics.seconds('callback_seconds', 'test', []),
  })
  const payins = new PayinDoor({
    ...settlement,
    readers: payinReaders,
    kept: new KeptCallbacks({ ...keeping, kind: 'payin' }),
    log: silentLogger,
    answered,
  })
  payouts.routes(server)
  payins.routes(server)
  const url = await listen(server, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const sign = (fields: readonly (readonly [string, string])[], signingKey = key): string => {
    const made = signature(new Map(fields), signingKey, dialect.sign, 'callbacks')
    return [...fields, ['sign', made] as const]
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .join('&')
  }
  return {
    ledger,
    config,
    key,
    leaveSettings() {
      payoutReaders.clear()
      payinReaders.clear()
    },
    comeBack(keyThen = key) {
      const settings = { ...merchant, key: keyThen }
      payoutReaders.set('acme', readerOf(settings, parsePayoutCallback))
      payinReaders.set('acme', readerOf(settings, parsePayinCallback))
    },
    sign,
    payins: () => ledger.db.run(storedPayins, {}),
    doors: {
      payout: {
        url: url + callbackPath('acme'),
        takeUpKept: () => payouts.takeUpKept(),
        fields: {
          ...{ amount: '5000000', mchOrderNo: payout.orderNo, fee: '500', channelPayNo: '632611200001' },
          ...{ agentpayOrderId: 'AP1', status: '2' },
        },
      },
      payin: {
        url: url + payinCallbackPath('acme'),
        takeUpKept: () => payins.takeUpKept(),
        fields: {
          ...{
            payOrderId: payOrderId ?? '',
            paySuccTime: '1795262400000',
            amount: '50000',
            mchId: '1000100',
          },
          ...{
            mchOrderNo: payinId,
            channelPayNo: '632611200001',
            backType: '2',
            channelCode: 'upi',
            status: '2',
          },
        },
      },
    },
  }
}
