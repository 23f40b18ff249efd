import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { request } from 'undici'
import { startPayoutd } from '../src/app/start.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { accountOf } from '../src/gateway/dialect/account.ts'
import { signature } from '../src/gateway/wire/sign.ts'
import { KeptCallbacks } from '../src/ledger/callbacks/kept-callbacks.ts'
import { endTurn, sweepKeptCallbacks, takeTurn } from '../src/ledger/callbacks/sql/kept-callbacks.ts'
import { censusOfKeys } from '../src/operators/rotate-keys.ts'
import { silentLogger } from '../src/platform/log.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { openCallbackEndpoints } from './callback-endpoints.ts'
import { accepted, anomaliesOf, payoutsOf, testLedger } from './ledger.ts'

const keptRows = sql<object, { kind: string; sealed: Buffer }>`select kind, sealed from kept_callbacks`
const fillUp = sql<{ merchantId: string; count: number }>`
  insert into kept_callbacks (merchant_id, kind, order_no, query_hash, sealed)
  select ${'merchantId'}, 'payout', 'o' || n, '', '\\x01' from generate_series(1, ${'count'}::int) n`
const inState = sql<object, { states: string[] }>`
  select array(select state from payouts) || array(select state from payins) as states`
const monthAgo = sql<object>`update kept_callbacks set at = now() - interval '31 days'`

/** With a late query still to come. */
const expireUnpaid = sql<object>`
  update payins set state = 'expired', utr = null, paid_at = null, due_at = now() + interval '3 days'`
const askedAgo = sql<object>`update lost_callbacks set ask_at = now()`
const lose = sql<{ kind: string }>`
  insert into lost_callbacks (merchant_id, kind, order_no)
  select merchant_id, 'payout', order_no from payouts where ${'kind'} = 'payout'
  union all
  select merchant_id, 'payin', payin_id from payins where ${'kind'} = 'payin'`
const lostRows = sql<object, { seconds: number }>`
  select extract(epoch from ask_at - now())::float8 as seconds from lost_callbacks`
/** What comes later: the transfer was returned; the payer paid. */
const LATER = { payout: { status: '3' }, payin: {} }

const SUCCESS = [200, 'success']
const NO_ROOM = [503, 'no room, come again']
const UNKNOWN = [404, 'unknown merchant']

for (const kind of ['payout', 'payin'] as const) {
  describe(`a ${kind} callback for a merchant that left the settings`, () => {
    async function left(t: TestContext) {
      const { ledger, endpoints, sign, leaveSettings, ...world } = await openCallbackEndpoints(t)
      const { url, fields, takeUpKept } = endpoints[kind]
      leaveSettings()
      const call = async (over: Record<string, string> = {}, signingKey?: string, to = url) => {
        const query = sign(Object.entries({ ...fields, ...over }), signingKey)
        const answer = await request(`${to}?${query}`, { method: 'POST' })
        return [answer.statusCode, await answer.body.text()]
      }
      return {
        ...{
          ledger,
          url,
          fields,
          call,
          takeUpKept,
          queryLost: endpoints[kind].queryLost,
          leaveSettings,
          ...world,
        },
        kept: () => ledger.db.run(keptRows, {}),
        paid: async () => (await ledger.db.run(inState, {}))[0]?.states.filter((state) => state === 'paid'),
      }
    }

    test('is kept once, sealed, and settles the order when the merchant is back', async (t) => {
      const { ledger, call, kept, paid, fields, comeBack, takeUpKept } = await left(t)
      for (let i = 0; i < 3; i++) assert.deepEqual(await call(), SUCCESS)
      const [only, ...others] = await kept()
      assert.deepEqual([only?.kind, others], [kind, []])
      assert.doesNotMatch(only?.sealed.toString('latin1') ?? '', new RegExp(fields.mchOrderNo))
      await takeUpKept()
      assert.deepEqual([await paid(), (await kept()).length], [[], 1])
      comeBack()
      await takeUpKept()
      assert.deepEqual([await paid(), await kept(), await anomaliesOf(ledger)], [['paid'], [], []])
    })

    test('is 404 if the ledger lacks the order, or has it for another merchant', async (t) => {
      const { url, call, kept } = await left(t)
      assert.deepEqual(await call({ mchOrderNo: 'SOMEBODYELSE' }), UNKNOWN)
      assert.deepEqual(await call({ mchOrderNo: '' }), UNKNOWN)
      for (const merchantId of ['stranger', 'a%00b', 'x'.repeat(90)]) {
        assert.deepEqual(await call({}, undefined, url.replace('acme', merchantId)), UNKNOWN)
      }
      assert.deepEqual(await kept(), [])
    })

    test('counts for nothing while it does not verify, and counts once the right key is there', async (t) => {
      const { key, call, kept, paid, comeBack, takeUpKept } = await left(t)
      assert.deepEqual(await call({}, 'former'), SUCCESS)
      comeBack()
      await takeUpKept()
      assert.deepEqual([await paid(), (await kept()).length], [[], 1])
      comeBack('former')
      await takeUpKept()
      assert.deepEqual([await paid(), await kept()], [['paid'], []])
      assert.notEqual(key, 'former')
    })

    test('finds room for eight per order, and again for repeats of those', async (t) => {
      const { call, kept } = await left(t)
      for (let fee = 1; fee <= 8; fee++) assert.deepEqual(await call({ fee: String(fee) }), SUCCESS)
      assert.deepEqual(await call({ fee: '9' }), NO_ROOM)
      assert.deepEqual(await call({ fee: '8' }), SUCCESS)
      assert.equal((await kept()).length, 8)
    })

    test('finds no room beyond the limits per merchant and in total', async (t) => {
      const { ledger, call, kept } = await left(t)
      await ledger.db.run(fillUp, { merchantId: 'acme', count: 20_000 })
      assert.deepEqual(await call(), NO_ROOM)
      await ledger.db.run(monthAgo, {})
      await ledger.db.run(sweepKeptCallbacks, { days: 30, limit: 20_000 })
      assert.deepEqual(await kept(), [])
      await ledger.db.run(fillUp, { merchantId: 'bolt', count: 100_000 })
      assert.deepEqual(await call(), NO_ROOM)
    })

    test('that found no room causes one query about its order, even an ended one, when the merchant is back', async (t) => {
      const { ledger, call, queryLost, comeBack, ...world } = await left(t)
      comeBack()
      assert.deepEqual(await call(), SUCCESS)
      if (kind === 'payin') await ledger.db.run(expireUnpaid, {})
      world.leaveSettings()
      for (let fee = 1; fee <= 8; fee++) await call({ fee: String(fee) }, 'forged')
      assert.deepEqual(await call(LATER[kind]), NO_ROOM)
      comeBack()
      assert.equal(await queryLost('nothing'), 1)
      assert.equal(await queryLost(), 0)
      await ledger.db.run(askedAgo, {})
      assert.equal(await queryLost(), 1)
      await ledger.db.run(askedAgo, {})
      assert.equal(await queryLost(), 0)
      const told = [await world.paid(), await anomaliesOf(ledger)]
      assert.deepEqual(told, [['paid'], kind === 'payout' ? ['contradiction'] : []])
    })

    test('that was lost for an ended order that the gateway does not find causes more queries, then a notice', async (t) => {
      const { ledger, call, queryLost, comeBack } = await left(t)
      comeBack()
      assert.deepEqual(await call(), SUCCESS)
      if (kind === 'payin') await ledger.db.run(expireUnpaid, {})
      await ledger.db.run(lose, { kind })
      const secondsUntilAsked = async () => Number((await ledger.db.run(lostRows, {}))[0]?.seconds)
      for (let times = 1; times < 50; times++) {
        assert.ok(await queryLost('no-order'))
        const seconds = await secondsUntilAsked()
        assert.ok(seconds > 0 && seconds <= 1, `in ${seconds} s, by the waits of the dialect`)
        await ledger.db.run(askedAgo, {})
      }
      assert.deepEqual(await anomaliesOf(ledger), [])
      assert.ok(await queryLost('no-order'))
      assert.deepEqual(
        [await anomaliesOf(ledger), await ledger.db.run(lostRows, {})],
        [['lost-callback'], []],
      )
    })

    test('that was lost for an order in regular polling is left to that once it is not found', async (t) => {
      const { ledger, queryLost } = await left(t)
      await ledger.db.run(lose, { kind })
      assert.ok(await queryLost('no-order'))
      assert.deepEqual([await anomaliesOf(ledger), await ledger.db.run(lostRows, {})], [[], []])
    })

    test('that is dropped by age causes a query about its order too', async (t) => {
      const { ledger, call, queryLost } = await left(t)
      await call()
      await ledger.db.run(sweepKeptCallbacks, { days: 30, limit: 20_000 })
      assert.equal(await queryLost(), 0)
      await ledger.db.run(monthAgo, {})
      await ledger.db.run(sweepKeptCallbacks, { days: 30, limit: 20_000 })
      assert.equal(await queryLost(), 1)
    })

    test('is processed in order of arrival', async (t) => {
      const { ledger, config, call } = await left(t)
      const fees = Array.from({ length: 8 }, (_, i) => String(i))
      for (const fee of fees) assert.deepEqual(await call({ fee }), SUCCESS)
      const taken: (string | null)[] = []
      const kept = new KeptCallbacks({ db: ledger.db, sealing: config.sealing, kind })
      await kept.takeUp(['acme'], async (_, rawQuery) => {
        taken.push(new URLSearchParams(rawQuery).get('fee'))
        return true
      })
      assert.deepEqual(taken, fees)
    })

    test('is left to the process that is processing them', async (t) => {
      const { ledger, call, takeUpKept, comeBack, kept } = await left(t)
      await call()
      comeBack()
      const [turn] = await ledger.db.run(takeTurn, { kind, forMs: 60_000 })
      await takeUpKept()
      assert.equal((await kept()).length, 1)
      await ledger.db.run(endTurn, { kind, holder: turn?.holder ?? '' })
      await takeUpKept()
      assert.deepEqual(await kept(), [])
    })

    test('names the key that sealed it, which therefore counts as in use', async (t) => {
      const { ledger, call } = await left(t)
      const sealed = async () => (await censusOfKeys(ledger.db)).get(1) ?? 0
      const before = await sealed()
      await call()
      assert.equal(await sealed(), before + 1)
    })

    test('that the gateway sends while the store is down is 503', async (t) => {
      const { ledger, call } = await left(t)
      const { write } = ledger.db
      ledger.db.write = () => Promise.reject(new Error('connection refused'))
      assert.deepEqual(await call(), [503, 'not stored, come again'])
      ledger.db.write = write
      assert.deepEqual(await call(), SUCCESS)
    })
  })
}

const send = sql<{ accountId: string }>`
  update payouts set state = 'processing', attempt = 1, ready = false, account_id = ${'accountId'},
    due_at = now() + interval '1 hour'`

test('the next start that knows the merchant processes all kept callbacks, more than a page of them', async (t) => {
  const { ledger, config } = await testLedger(t)
  const merchant = config.merchants.get('acme')
  assert.ok(merchant)
  await accepted(
    ledger,
    config,
    Array.from({ length: 250 }, (_, i) => command(`p${i}`)),
  )
  await ledger.db.run(send, accountOf(merchant))
  const kept = new KeptCallbacks({ db: ledger.db, sealing: config.sealing, kind: 'payout' })
  for (const { orderNo } of await payoutsOf(ledger)) {
    const fields = { amount: '5000000', mchOrderNo: orderNo, agentpayOrderId: `A${orderNo}`, status: '2' }
    const sign = signature(new Map(Object.entries(fields)), merchant.key, merchant.dialect.sign, 'callbacks')
    const rawQuery = new URLSearchParams({ ...fields, sign }).toString()
    assert.equal(await kept.keep({ merchantId: 'acme', orderNo, rawQuery }), 'kept')
  }
  const payoutd = await startPayoutd(config, new Set(['outcomes']), silentLogger)
  t.after(() => payoutd.stop())
  await eventually('all payouts paid', async () =>
    (await payoutsOf(ledger)).every(({ state }) => state === 'paid'),
  )
  await eventually('nothing kept', async () => (await ledger.db.run(keptRows, {})).length === 0)
})
