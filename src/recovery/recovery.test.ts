import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { ACCOUNT, accepted, anomaliesOf, brokenVersions, openPurse, payoutsOf } from '../../test/ledger.ts'
import { AMOUNT, besideSandbox } from '../../test/reconcile.ts'
import { claim } from '../dispatch/claim.ts'
import { beforeAsking, keepBalance } from '../dispatch/sql/purse.ts'
import { PositiveControl } from '../gateway/positive-control.ts'
import { cancelPayouts } from '../operations/cancel-payouts.ts'
import { decided } from '../operations/operations.fixture.ts'
import type { QueryAnswer } from '../payout/answers.ts'
import { command } from '../payout/command.fixture.ts'
import { JUDGEMENT } from '../payout/judgement.ts'
import { paise } from '../payout/money.ts'
import { become, type Timetable } from '../payout/transition.ts'
import { systemClock } from '../platform/clock.ts'
import { silentLogger } from '../platform/log.ts'
import { Metrics } from '../platform/metrics.ts'
import { sql } from '../platform/postgres.ts'
import { askingAbout } from '../settlement/control.ts'
import { Poller } from '../settlement/poller.ts'
import { recallPublished } from './lost.ts'
import {
  type AskedAccount,
  askAboutOpen,
  fence,
  findFence,
  listOpen,
  type RecoveryDeps,
  takeDown,
} from './recovery.ts'
import { graceLeft } from './sql/fence.ts'

const TABLE: Timetable = { queryAfterMs: [1], graceMs: 0, confirmations: 2, resendWhenAbsent: true }
const WHO = { by: 'asha', reason: 'disk lost' }
const attempts = sql<object, { payoutId: string; attempt: number; owner: string }>`
  select payout_id, attempt, owner from attempts order by payout_id, attempt`
const histories = sql<{ payoutId: string }, { version: number | null; toState: string; source: string }>`
  select version, to_state, source from history where payout_id = ${'payoutId'} order by at, version nulls first`
const expired = sql<object>`update payouts set deadline = now() - interval '1 minute', due_at = now()`
const purse = sql<object, { available: bigint | null; ramp: number }>`select available, ramp from merchants`

/** A sandbox, and a ledger that knows what was accepted, and not what was sent. */
async function restored(t: TestContext) {
  const beside = await besideSandbox(t)
  const { ledger, config, client, accountId, orderNo, ended } = beside
  const control = new PositiveControl(systemClock)
  const queried: string[] = []
  const asking = askingAbout(
    { merchantId: 'acme', accountId },
    (mchOrderNo) => client.query({ mchOrderNo }),
    ledger.db,
  )
  const account: AskedAccount = {
    accountId,
    table: TABLE,
    query(mchOrderNo) {
      queried.push(mchOrderNo)
      return client.query({ mchOrderNo })
    },
    control: {
      found: (mchOrderNo) => control.found('acme', mchOrderNo),
      holds: () => control.holds('acme', asking),
    },
  }
  const deps: Omit<RecoveryDeps, 'accounts'> = {
    ledger,
    judge: JUDGEMENT,
    ratePerSecond: 1_000,
    clock: systemClock,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  }
  const accept = (...payoutIds: string[]) =>
    accepted(
      ledger,
      config,
      payoutIds.map((payoutId) => command(payoutId, { amount: paise(AMOUNT) })),
    )
  return {
    ...beside,
    queried,
    accept,
    /** Paid at the gateway, of which the ledger knows nothing. */
    async payUnknown(payoutId: string, amount = AMOUNT) {
      const order = { ...command(payoutId), mchOrderNo: orderNo(payoutId), amount: paise(amount) }
      const answer = await client.apply(
        { ...order, notifyUrl: 'http://127.0.0.1:9/never' },
        { mayStillSend: () => true },
      )
      assert.equal(answer.kind, 'accepted')
      await ended(orderNo(payoutId))
    },
    async raise() {
      const [raised] = await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
      return raised ?? assert.fail('there is no fence')
    },
    async recover(overrides: Partial<AskedAccount> = {}) {
      const [raised] = await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
      assert.ok(raised)
      await listOpen(ledger.db, raised)
      const ending = await askAboutOpen(raised, { ...deps, accounts: [{ ...account, ...overrides }] })
      const { kind, findings } = await takeDown(raised, ledger)
      const counts = Object.fromEntries(findings.map(({ found, count }) => [found ?? 'untold', count]))
      return { ending, kind, counts }
    },
    async states() {
      return (await payoutsOf(ledger)).map(({ payoutId, state, reason, attempt }) => [
        payoutId,
        state,
        reason,
        attempt,
      ])
    },
  }
}

test('what was paid after the restore point is paid, with its attempt, and what was never sent goes on', async (t) => {
  const { accept, payUnknown, recover, states, db, ledger } = await restored(t)
  await accept('paid', 'waits')
  await payUnknown('paid')
  assert.deepEqual(await recover(), {
    ending: 'all-asked',
    kind: 'recovered',
    counts: { paid: 1, 'never-sent': 1 },
  })
  assert.deepEqual(await states(), [
    ['paid', 'paid', null, 1],
    ['waits', 'queued', null, 0],
  ])
  assert.deepEqual(await db.run(attempts, {}), [{ payoutId: 'paid', attempt: 1, owner: 'recovery' }])
  assert.deepEqual(await db.run(histories, { payoutId: 'paid' }), [
    { version: 1, toState: 'queued', source: 'COMMAND' },
    { version: null, toState: 'queued', source: 'OPERATOR' },
    { version: 2, toState: 'paid', source: 'QUERY' },
  ])
  assert.deepEqual([await anomaliesOf(ledger), await brokenVersions(ledger)], [[], []])
  assert.equal(await findFence(db, 'acme'), null)
})

test('an order of another amount is an anomaly, and never sent once more: a person decides', async (t) => {
  const { accept, payUnknown, recover, states, ledger } = await restored(t)
  await accept('other')
  await payUnknown('other', 2n * AMOUNT)
  assert.deepEqual((await recover()).counts, { review: 1 })
  assert.deepEqual(await states(), [['other', 'review', 'recovered', 1]])
  assert.deepEqual(await anomaliesOf(ledger), ['amount-mismatch'])
})

describe('"not found"', () => {
  test('does not count without a positive control: the merchant stays fenced, and a second run goes on', async (t) => {
    const { accept, payUnknown, recover, db, queried, orderNo } = await restored(t)
    await accept('waits')
    assert.deepEqual(await recover(), { ending: 'all-asked', kind: 'open', counts: { untold: 1 } })
    const standing = await findFence(db, 'acme')
    assert.deepEqual([standing?.by, standing?.reason], ['asha', 'disk lost'])
    await accept('paid')
    await payUnknown('paid')
    assert.deepEqual(await recover(), {
      ending: 'all-asked',
      kind: 'recovered',
      counts: { paid: 1, 'never-sent': 1 },
    })
    assert.equal(queried.filter((each) => each === orderNo('paid')).length, 1)
  })

  test('counts once the grace since the fence is over, and as often as the dialect wants', async (t) => {
    const { pay, accept, recover, client, db } = await restored(t)
    await pay('known')
    await accept('waits')
    const graceMs = 300
    const left: (number | undefined)[] = []
    const query = async (mchOrderNo: string): Promise<QueryAnswer> => {
      const since = (await findFence(db, 'acme'))?.since ?? 0
      left.push((await db.run(graceLeft, { since, graceMs }))[0]?.ms)
      return client.query({ mchOrderNo })
    }
    const { kind } = await recover({ query, table: { ...TABLE, graceMs, confirmations: 3 } })
    assert.equal(kind, 'recovered')
    assert.deepEqual(left, [0, 0, 0])
  })

  test('is a person’s to decide about where it was published that it was sent, and duplicates may pay', async (t) => {
    const { pay, accept, raise, recover, states, ledger, codec, db } = await restored(t)
    await pay('known')
    await accept('sent', 'waits')
    await listOpen(db, await raise())
    const lost = [
      [2, 'QUEUED', 'SUBMITTING', 'COMMAND'],
      [3, 'SUBMITTING', 'PROCESSING', 'APPLY'],
    ] as const
    const records = lost.map(([version, fromState, toState, evidence]) => ({
      ...{ offset: 0n, headers: {}, timestamp: 0, key: Buffer.from('acme:sent') },
      value: ledger.encode('PayoutEvent', {
        ...{ payoutId: 'sent', merchantId: 'acme', batchId: null, mchOrderNo: null, reason: null },
        ...{ version, fromState, toState, evidence, amount: AMOUNT, currency: 'INR', occurredAt: 0 },
      }),
    }))
    const recalled = await recallPublished(['acme'], {
      ledger,
      codec,
      readTopic: async (_, onRecord) => {
        for (const record of records) await onRecord(record)
      },
    })
    assert.equal(recalled, 1)
    assert.deepEqual(
      (await payoutsOf(ledger))
        .map(({ payoutId, version, attempt }) => [payoutId, version, attempt])
        .slice(1),
      [
        ['sent', 3, 1],
        ['waits', 1, 0],
      ],
    )
    await recover({ table: { ...TABLE, resendWhenAbsent: false } })
    assert.deepEqual((await states()).slice(1), [
      ['sent', 'review', 'proved-absent', 1],
      ['waits', 'queued', null, 0],
    ])
    assert.deepEqual(await brokenVersions(ledger), [])
  })
})

test('where the gateway tells nothing the merchant stays fenced', async (t) => {
  const { accept, recover, db } = await restored(t)
  await accept(...Array.from({ length: 30 }, (_, i) => `p${i}`))
  const query = async (): Promise<QueryAnswer> => ({ kind: 'unknown', reason: 'timeout', exchange: {} })
  assert.deepEqual(await recover({ query }), { ending: 'silent', kind: 'open', counts: { untold: 30 } })
  assert.ok(await findFence(db, 'acme'))
})

test('merchants are fenced together, those that sent before too; a fence that stands keeps who raised it', async (t) => {
  const { db, ledger } = await restored(t)
  await ledger.db.run(openPurse, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 5n })
  const both = [
    { merchantId: 'bolt', feeEstimate: 0n },
    { merchantId: 'acme', feeEstimate: 0n },
  ]
  const first = await fence(db, both, WHO)
  assert.deepEqual(
    first.map(({ merchantId, by, reason }) => [merchantId, by, reason]),
    [
      ['acme', 'asha', 'disk lost'],
      ['bolt', 'asha', 'disk lost'],
    ],
  )
  assert.deepEqual(await fence(db, both, { by: 'meera', reason: 'again' }), first)
})

describe('while a merchant is fenced', () => {
  test('nothing is claimed; afterwards the balance is asked for anew, and a canary goes first', async (t) => {
    const { accept, pay, raise, recover, ledger, config, db } = await restored(t)
    await pay('known')
    await accept('waits')
    await raise()
    await db.run(openPurse, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
    const [mark] = await db.run(beforeAsking, { merchantId: 'acme' })
    assert.ok(mark)
    await db.run(keepBalance, { merchantId: 'acme', available: 10n ** 9n, ...mark })
    const options = {
      merchantId: 'acme',
      atMost: 9,
      owner: 'me',
      leaseMs: 60_000,
      sealing: config.sealing,
      fingerprintKey: config.fingerprintKey,
      account: ACCOUNT,
    }
    const limits = { maxInFlight: 9, ratePerSecond: null }
    const { wave, gate } = await claim(ledger, { ...options, limits })
    assert.deepEqual([wave.length, gate.closed], [0, 'recovering'])
    assert.equal((await recover()).kind, 'recovered')
    assert.deepEqual(await db.run(purse, {}), [{ available: null, ramp: 0 }])
  })

  test('what was never sent, as the ledger has it, does not expire: it may have been paid', async (t) => {
    const { accept, payUnknown, raise, recover, states, ledger, client, accountId } = await restored(t)
    await accept('late')
    await payUnknown('late')
    await raise()
    await ledger.db.run(expired, {})
    const poller = new Poller({
      ledger,
      judge: JUDGEMENT,
      tables: new Map([['acme', TABLE]]),
      counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
      askers: new Map([
        [
          'acme',
          [
            {
              ...{ accountId, settingsHash: client.settingsHash, table: TABLE },
              query: (mchOrderNo: string) => client.query({ mchOrderNo }),
              timeoutMs: 1_000,
            },
          ],
        ],
      ]),
      control: new PositiveControl(systemClock),
      log: silentLogger,
    })
    await poller.turn()
    await poller.drain()
    assert.deepEqual(await states(), [['late', 'queued', null, 0]])
    await recover()
    assert.deepEqual(await states(), [['late', 'paid', null, 1]])
  })

  test('a cancellation waits for what the gateway says: cancelled if it has no such order, else settled', async (t) => {
    const { accept, payUnknown, raise, recover, states, ledger } = await restored(t)
    await accept('never', 'paid')
    await payUnknown('paid')
    await raise()
    for (const payoutId of ['never', 'paid']) {
      const outcomes = await cancelPayouts({ merchantId: 'acme', payoutIds: [payoutId], ...WHO }, ledger)
      assert.deepEqual(outcomes, [{ payoutId, kind: 'held', from: 'queued' }])
    }
    assert.equal((await recover()).kind, 'recovered')
    assert.deepEqual(await states(), [
      ['never', 'cancelled', 'cancelled', 0],
      ['paid', 'paid', null, 1],
    ])
    assert.deepEqual(await brokenVersions(ledger), [])
  })
})

test('payouts under way in the restored ledger are settled by what the gateway says', async (t) => {
  const { send, ended, orderNo, recover, states, ledger } = await restored(t)
  await send('submitting', 'processing')
  await ended(orderNo('submitting'))
  await ended(orderNo('processing'))
  await decided(ledger, 'processing', (payout) => ({
    change: { before: payout, after: become(payout, 'processing', {}), source: 'APPLY', exchange: null },
  }))
  assert.deepEqual((await recover()).counts, { paid: 2 })
  assert.deepEqual(await states(), [
    ['processing', 'paid', null, 1],
    ['submitting', 'paid', null, 1],
  ])
})
