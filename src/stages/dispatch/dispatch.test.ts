import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { accepted, anomaliesOf, payoutsOf, setBalance, testLedger } from '../../../test/ledger.ts'
import { startPayoutd } from '../../app/start.ts'
import type { Merchant } from '../../config/merchants.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { loadDialect } from '../../gateway/dialect/dialect-file.ts'
import { fencedMerchants, type Ledger } from '../../ledger/ledger.ts'
import { noteLoss, provenLosses } from '../../ledger/sql/fence.ts'
import { silentLogger } from '../../platform/log.ts'
import { type Sql, sql } from '../../platform/postgres/postgres.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { WARM } from './merchant-gate.ts'

/** A busy machine may take seconds from a claim to its send. */
const PATIENT = loadDialect('default', { leaseMs: 300_000 })
const atFullSpeed = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`
const attempts = sql<object, { leaseUntil: number }>`
  select lease_until from attempts order by payout_id`

/** Ends in reverse order of start: a payoutd whose database is gone would wait for it. */
function endsOf(t: TestContext): AsyncDisposableStack {
  const ends = new AsyncDisposableStack()
  t.after(() => ends.disposeAsync())
  return ends
}

type SilentGateway = Awaited<ReturnType<typeof silentGateway>>

/** A gateway that accepts every request and answers none. `lose` resets all connections, `loseOne` the oldest. */
async function silentGateway(ends: AsyncDisposableStack) {
  const sockets = new Set<Socket>()
  let applies = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    socket.on('data', (bytes) => {
      applies += bytes.toString('latin1').split(`POST ${PATIENT.paths.apply} `).length - 1
      server.emit('apply')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const lose = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  ends.defer(async () => {
    lose()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Resolves once it has so many applies. */
    applied: async (count: number) => {
      while (applies < count) await once(server, 'apply')
    },
    appliesNow: () => applies,
    lose,
    loseOne: () => [...sockets][0]?.resetAndDestroy(),
  }
}

/**
 * payoutd in the role of dispatch, at full speed, with balances that cover everything, and its log. `further` merchants have
 * accounts of their own, at these gateways.
 */
async function dispatchTo(
  ends: AsyncDisposableStack,
  gateway: SilentGateway,
  further: Record<string, SilentGateway> = {},
  inFlight = 256,
) {
  const { ledger, config: read } = await testLedger({ after: (drop) => ends.defer(drop) })
  const gateways = Object.entries({ acme: gateway, ...further })
  const lose = () => {
    for (const [, each] of gateways) each.lose()
  }
  const merchants = gateways.map(([merchantId, { url: baseUrl }]): [string, Merchant] => [
    merchantId,
    {
      ...(read.merchants.get('acme') as Merchant),
      ...{ merchantId, baseUrl, mchId: `1${merchantId}`, dialect: PATIENT },
    },
  ])
  const config = { ...read, inFlight, merchants: new Map(merchants) }
  const warnings: Record<string, unknown>[] = []
  const payoutd = await startPayoutd(
    config,
    new Set(['dispatch']),
    pino(
      { level: 'warn', base: null, timestamp: false },
      { write: (line) => void warnings.push(JSON.parse(line)) },
    ),
  )
  ends.defer(() => {
    lose()
    return payoutd.stop()
  })
  for (const [merchantId] of gateways) {
    await setBalance(ledger.db, merchantId, 10n ** 12n)
  }
  await ledger.db.run(atFullSpeed, { warmUp: WARM })
  return {
    ledger,
    config,
    payoutd,
    warnings,
    abandoned: () => warnings.filter(({ msg }) => /abandoned/.test(String(msg))),
  }
}

test('a stop that cannot wait logs each payout that it leaves to its lease, and none whose answer is stored', async (t) => {
  const ends = endsOf(t)
  const gateway = await silentGateway(ends)
  const { ledger, config, payoutd, abandoned } = await dispatchTo(ends, gateway)
  await accepted(ledger, config, [command('p1'), command('p2')])
  await gateway.applied(2)
  payoutd.logAbandoned()
  const payouts = await payoutsOf(ledger)
  const leases = await ledger.db.run(attempts, {})
  assert.deepEqual(
    abandoned().map(({ msg, ...fields }) => fields),
    payouts.map(({ payoutId, orderNo }, i) => ({
      level: 40,
      merchantId: 'acme',
      payoutId,
      mchOrderNo: orderNo,
      attempt: 1,
      leaseUntil: new Date(leases[i]?.leaseUntil ?? Number.NaN).toISOString(),
    })),
  )
  assert.match(String(abandoned()[0]?.msg), /unknown when its lease ends, and payoutd queries it/)

  gateway.lose()
  await payoutd.stop()
  payoutd.logAbandoned()
  assert.equal(abandoned().length, 2)
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ state }) => state),
    ['unknown', 'unknown'],
  )
})

test('payoutd logs a payout that no key opens in one line without a stack, and sends it after a start with its key', async (t) => {
  const ends = endsOf(t)
  const gateway = await silentGateway(ends)
  const { ledger, config, payoutd, warnings } = await dispatchTo(ends, gateway)
  const sealing = {
    current: 2,
    keys: new Map([...config.sealing.keys, [2, createSecretKey(randomBytes(32))]]),
  }
  await accepted(ledger, { ...config, sealing }, [command('p1')])
  await accepted(ledger, config, [command('p2')])
  await gateway.applied(1)
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ payoutId, state }) => [payoutId, state]),
    [
      ['p1', 'held'],
      ['p2', 'submitting'],
    ],
  )
  assert.deepEqual(warnings, [
    {
      level: 50,
      merchantId: 'acme',
      payoutId: 'p1',
      keyId: 2,
      msg:
        'cannot decrypt the bank details, so the payout is held, unsent: add the key that encrypted them to ENCRYPTION_KEYS, ' +
        'and restart payoutd',
    },
  ])

  gateway.lose()
  await payoutd.stop()
  const again = await startPayoutd({ ...config, sealing }, new Set(['dispatch']), silentLogger)
  ends.defer(() => {
    gateway.lose()
    return again.stop()
  })
  await gateway.applied(2)
  assert.equal((await payoutsOf(ledger))[0]?.state, 'submitting')
})

const refusesUnknown = sql<object>`alter table payouts add constraint odd check (state <> 'unknown')`

test('an answer that the database refuses is an anomaly, and holds no slot', async (t) => {
  const ends = endsOf(t)
  const gateway = await silentGateway(ends)
  const { ledger, config } = await dispatchTo(ends, gateway, {}, 1)
  await ledger.db.run(refusesUnknown, {})
  await accepted(ledger, config, [command('p1'), command('p2')])
  await gateway.applied(1)
  gateway.lose()
  await gateway.applied(2)
  assert.deepEqual(await anomaliesOf(ledger), ['not-stored'])
})

const refusesAttempt = sql<object>`alter table attempts add constraint odd check (payout_id <> 'acme-11')`
const refusesToSend = sql<object>`
  do $$ begin
    create function odd() returns trigger language plpgsql as
      'begin if new.payout_id = ''acme-11'' and new.state = ''submitting'' then raise ''odd''; end if; return new; end';
    create trigger odd before update on payouts for each row execute function odd();
  end $$`

for (const [how, refuses] of [
  ['for its data', refusesAttempt],
  ['nobody can say why', refusesToSend],
] as const) {
  test(`a payout that the database refuses to claim, ${how}, becomes an anomaly and stays queued; others of its merchant go`, async (t) => {
    const ends = endsOf(t)
    const gateway = await silentGateway(ends)
    const { ledger, config } = await dispatchTo(ends, gateway)
    await ledger.db.run(refuses, {})
    await accepted(ledger, config, many(40, 'acme'))
    await eventually('all others to be sent', async () => gateway.appliesNow() === 39, 20_000)
    await eventually('an anomaly', async () => (await anomaliesOf(ledger)).length > 0)
    assert.deepEqual(await anomaliesOf(ledger), ['not-stored'])
    const stays = (await payoutsOf(ledger)).find(({ payoutId }) => payoutId === 'acme-11')
    assert.deepEqual([stays?.state, stays?.version, stays?.attempt], ['queued', 1, 0])
  })
}

const lockMerchant = sql<object>`select from merchants where merchant_id = 'acme' for update`
const lockPayouts = sql<object>`select from payouts where merchant_id = 'acme' for update`

/** Holds locks until the returned function is called, like an open transaction. */
async function locked(ends: AsyncDisposableStack, ledger: Ledger, statement: Sql<object, never>) {
  const taken = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const holding = ledger.db.transaction('test', async (tx) => {
    await tx.run(statement, {})
    taken.resolve()
    await over.promise
  })
  ends.defer(async () => {
    over.resolve()
    await holding
  })
  await taken.promise
}

const waitForLocks = sql<object, { count: number }>`
  select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
const waiting = async (ledger: Ledger) => (await ledger.db.run(waitForLocks, {}))[0]?.count

const many = (count: number, merchantId: string) =>
  Array.from({ length: count }, (_, i) => command(`${merchantId}-${i}`, { merchantId }))

/** Far below the timeout of a call, far above what a busy machine needs. */
const SOON_MS = 5_000

test('while one gateway hangs with more payouts than there are slots, another merchant gets slots at once', async (t) => {
  const ends = endsOf(t)
  const [hanging, other] = [await silentGateway(ends), await silentGateway(ends)]
  const { ledger, config } = await dispatchTo(ends, hanging, { bolt: other }, 16)
  await accepted(ledger, config, many(40, 'acme'))
  await hanging.applied(14)
  await accepted(ledger, config, many(1, 'bolt'))
  await eventually('the other’s payout', async () => other.appliesNow() === 1, SOON_MS)
  assert.equal(hanging.appliesNow(), 14)
})

test('while one gateway of twenty merchants hangs, each with more payouts than there are slots, another merchant gets a slot at once', async (t) => {
  const ends = endsOf(t)
  const [hanging, other] = [await silentGateway(ends), await silentGateway(ends)]
  const further = Array.from({ length: 19 }, (_, i) => `m${i}`)
  const theirs = Object.fromEntries(further.map((merchantId) => [merchantId, hanging]))
  const { ledger, config } = await dispatchTo(ends, hanging, { ...theirs, bolt: other }, 16)
  await accepted(
    ledger,
    config,
    ['acme', ...further].flatMap((merchantId) => many(20, merchantId)),
  )
  await hanging.applied(16 + 16)
  await accepted(ledger, config, many(1, 'bolt'))
  await eventually('the other’s payout', async () => other.appliesNow() === 1, SOON_MS)
})

test('if it is proven that the ledger was set back, dispatch sends nothing and fences every merchant', async (t) => {
  const ends = endsOf(t)
  const gateway = await silentGateway(ends)
  const { ledger, config } = await dispatchTo(ends, gateway, { bolt: await silentGateway(ends) })
  await ledger.db.run(noteLoss, { reason: 'an attempt is missing' })
  await accepted(ledger, config, many(1, 'acme'))
  await eventually('the fences', async () => (await fencedMerchants(ledger.db)).size === 2)
  await eventually('the end', async () => (await ledger.db.run(provenLosses, {})).length === 0)
  assert.equal(gateway.appliesNow(), 0)
})

test('a merchant whose row is locked holds up no other', async (t) => {
  const ends = endsOf(t)
  const [first, other] = [await silentGateway(ends), await silentGateway(ends)]
  const { ledger, config } = await dispatchTo(ends, first, { bolt: other })
  await locked(ends, ledger, lockMerchant)
  await accepted(ledger, config, [...many(5, 'acme'), ...many(5, 'bolt')])
  await eventually('the other’s payouts', async () => other.appliesNow() === 5, SOON_MS)
  assert.equal(first.appliesNow(), 0)
})

test('answers of one merchant that cannot be stored hold up no answers of another', async (t) => {
  const ends = endsOf(t)
  const [first, other] = [await silentGateway(ends), await silentGateway(ends)]
  const { ledger, config } = await dispatchTo(ends, first, { bolt: other })
  await accepted(ledger, config, [...many(3, 'acme'), ...many(1, 'bolt')])
  await Promise.all([first.applied(3), other.applied(1)])
  await locked(ends, ledger, lockPayouts)
  first.loseOne()
  await eventually('an answer that waits for the lock', async () => (await waiting(ledger)) === 1)
  other.lose()
  await eventually(
    'the other’s answer',
    async () =>
      (await payoutsOf(ledger)).some(({ payoutId, state }) => payoutId === 'bolt-0' && state === 'unknown'),
    SOON_MS,
  )
})
