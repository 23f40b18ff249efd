import type { TestContext } from 'node:test'
import { command } from '../src/domain/commands/command.fixture.ts'
import { DECISIONS } from '../src/domain/decisions.ts'
import type { OrderReport } from '../src/domain/evidence.ts'
import type { QueryAnswer } from '../src/domain/gateway-answers.ts'
import { paise } from '../src/domain/money.ts'
import type { PayinQueryAnswer } from '../src/domain/payin/gateway-answers.ts'
import { parsePayinCallback, parsePayoutCallback } from '../src/gateway/callbacks/callback.ts'
import { PresenceCheck } from '../src/gateway/presence-check.ts'
import { signature } from '../src/gateway/wire/sign.ts'
import { KeptCallbacks } from '../src/ledger/callbacks/kept-callbacks.ts'
import type { QueryOutcome } from '../src/ledger/callbacks/lost-callbacks.ts'
import { payinCallbackEndpoint } from '../src/payins/outcomes.ts'
import { payinPoller } from '../src/payins/poller.ts'
import { createHttpServer, listen } from '../src/platform/http.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { callbackPath } from '../src/stages/outcomes/callback-endpoint.ts'
import { payoutCallbackEndpoint } from '../src/stages/outcomes/outcomes.ts'
import { payoutPoller } from '../src/stages/outcomes/payout-poller.ts'
import { ACCOUNT, accepted, payoutsOf, readerOf } from './ledger.ts'
import { POLICY, payinLedger, report, storedPayins } from './payins.ts'

const TELLS_LESS = {
  'no-order': { kind: 'not-found', exchange: {} },
  nothing: { kind: 'unknown', reason: 'timeout', exchange: {} },
} as const
const send = sql<{ accountId: string }>`
  update payouts set state = 'processing', attempt = 1, ready = false, account_id = ${'accountId'}`

/**
 * Both callback endpoints on a port, in front of a ledger with one sent payout and one open payin of ₹500. `sign`
 * makes the query string of a callback; `fields` are those of a payment of each.
 */
export async function openCallbackEndpoints(t: TestContext) {
  const { ledger, config, outcomeDeps, create } = await payinLedger(t)
  const payin = await create('order-7')
  const { payinId, payOrderId } = payin
  await accepted(ledger, config, [command('p1')])
  await ledger.db.run(send, ACCOUNT)
  const [payout] = await payoutsOf(ledger)
  const merchant = config.merchants.get('acme')
  if (!payout || !merchant) throw new Error('there is no payout')
  const { dialect, key } = merchant
  const metrics = new Metrics()
  const took = metrics.seconds('callback_seconds', 'test', [])
  const answered = metrics.counter('callbacks_total', 'test', ['merchant', 'answer'])
  const server = createHttpServer()
  const payoutReaders = new Map([['acme', readerOf(merchant, parsePayoutCallback)]])
  const payinReaders = new Map([['acme', readerOf(merchant, parsePayinCallback)]])
  const keeping = { db: ledger.db, sealing: config.sealing }
  const ofPayouts = {
    ledger,
    decisions: DECISIONS,
    queryPolicies: new Map([['acme', POLICY]]),
    counted: outcomeDeps.counted,
    log: silentLogger,
  }
  const payouts = payoutCallbackEndpoint({
    ...ofPayouts,
    readers: payoutReaders,
    kept: new KeptCallbacks({ ...keeping, kind: 'payout' }),
    clock: systemClock,
    answered,
    took,
  })
  const payins = payinCallbackEndpoint({
    ...outcomeDeps,
    readers: payinReaders,
    kept: new KeptCallbacks({ ...keeping, kind: 'payin' }),
    clock: systemClock,
    log: silentLogger,
    answered,
    took,
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
  let asked = 0
  const answering = <Answer>(answer: Answer, meanwhile: () => Promise<void>) => ({
    ...ACCOUNT,
    queryPolicy: POLICY,
    timeoutMs: 1_000,
    query: async () => {
      asked++
      await meanwhile()
      return answer
    },
  })
  const presenceCheck = new PresenceCheck(systemClock)
  const turnOf = async (poller: { queryLost(sign: () => void): Promise<number>; drain(): Promise<void> }) => {
    asked = 0
    await poller.queryLost(() => undefined)
    await poller.drain()
    return asked
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
    endpoints: {
      payout: {
        url: url + callbackPath('payout', 'acme'),
        takeUpKept: () => payouts.takeUpKept(),
        /** Queries a gateway that reports the payout as failed, or reports less; resolves with the number of queries. */
        queryLost: (told: QueryOutcome = 'order', meanwhile: () => Promise<void> = async () => undefined) => {
          const report: OrderReport = {
            ...{
              mchOrderNo: payout.orderNo,
              status: 'failed',
              amount: paise(5_000_000n),
              agentpayOrderId: 'AP1',
            },
            ...{ fee: null, utr: null, errorMessage: 'returned', exchange: {} },
          }
          const answer: QueryAnswer = { order: { kind: 'found', report } as const, ...TELLS_LESS }[told]
          return turnOf(
            payoutPoller({
              ...ofPayouts,
              queriers: new Map([['acme', [answering(answer, meanwhile)] as const]]),
              presenceCheck,
            }),
          )
        },
        fields: {
          ...{ amount: '5000000', mchOrderNo: payout.orderNo, fee: '500', channelPayNo: '632611200001' },
          ...{ agentpayOrderId: 'AP1', status: '2' },
        },
      },
      payin: {
        url: url + callbackPath('payin', 'acme'),
        takeUpKept: () => payins.takeUpKept(),
        /** Queries a gateway that reports the payin as paid, or reports less; resolves with the number of queries. */
        queryLost: (told: QueryOutcome = 'order', meanwhile: () => Promise<void> = async () => undefined) => {
          const known = { kind: 'known', report: report(payin, 'paid') } as const
          const answer: PayinQueryAnswer = { order: known, ...TELLS_LESS }[told]
          const queriers = new Map([['acme', [answering(answer, meanwhile)] as const]])
          return turnOf(payinPoller({ ...outcomeDeps, queriers, presenceCheck, log: silentLogger }))
        },
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
