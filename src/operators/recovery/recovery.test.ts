import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import {
  ACCOUNT,
  accepted,
  anomaliesOf,
  brokenVersions,
  payoutsOf,
  setBalance,
  upsertMerchant,
} from '../../../test/ledger.ts'
import { inOrderAgain, mixUp } from '../../../test/mixed-answers.ts'
import { AMOUNT, besideSandbox } from '../../../test/reconcile.ts'
import { recoveryDeps } from '../../../test/recovery-deps.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import { neverSent } from '../../domain/payout/ledger-lacks-attempt.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { become, change } from '../../domain/payout/transition.ts'
import { PresenceCheck } from '../../gateway/presence-check.ts'
import { storeEvidence } from '../../ledger/evidence/store-evidence.ts'
import { type Ledger, lockPayouts, storeDecisions } from '../../ledger/ledger.ts'
import { raiseFence } from '../../ledger/sql/fence.ts'
import { fenceAll, noteServer, serverIdentity } from '../../ledger/sql/server-identity.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { type Database, sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { claim } from '../../stages/dispatch/claim.ts'
import { askingAbout } from '../../stages/outcomes/known-orders.ts'
import { payoutPoller } from '../../stages/outcomes/payout-poller.ts'
import { cancelPayouts } from '../cancel-payouts.ts'
import { decided } from '../operations.fixture.ts'
import { resolvePayout } from '../resolve-payout.ts'
import type { Accounts, AskedAccount } from './accounts.ts'
import { lowerFence } from './nothing-lost.ts'
import { onThisServer } from './one-server.ts'
import { readBackPublished } from './read-back-published.ts'
import { fence, findFence, listOpen, lowerAfterRecovery, queryOpen, untilGraceIsOver } from './recovery.ts'
import { graceLeft } from './sql/fence.ts'
import { keepFound, tally } from './sql/list.ts'

const POLICY = { ...QUERY_POLICY, confirmations: 2, duplicatesRefused: true }
const WHO = { by: 'asha', reason: 'disk lost' }
const attempts = sql<object, { payoutId: string; attempt: number; owner: string }>`
  select payout_id, attempt, owner from attempts order by payout_id, attempt`
const histories = sql<{ payoutId: string }, { version: number | null; toState: string; source: string }>`
  select version, to_state, source from history where payout_id = ${'payoutId'} order by at, version nulls first`
const expired = sql<object>`update payouts set deadline = now() - interval '1 minute', due_at = now()`
const notes = sql<object, { note: string | null }>`
  select exchange ->> 'note' as note from history order by at, version nulls first`
const acts = sql<object, { actedBy: string; command: string; subjects: string[] }>`
  select acted_by, command, subjects from operator_acts order by act_id`
const blocked = sql<object, { count: number }>`
  select count(*)::int as count from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`
/** As on a standby that lacks the row of the merchant, or an earlier failover. */
const sameRound = sql<object>`update merchants set recovery_round = 0`
/** Fenced ten minutes ago, while a process continued to send through the former server. */
const fencedBefore = sql<object>`
  update merchants set recovering_since = now() - interval '10 minutes', recovery_began = null`
const begunBefore = sql<object>`update merchants set recovery_began = now() - interval '10 minutes'`
const takenDown = sql<object>`
  update merchants set recovering_since = null, recovering_by = null, recovering_reason = null`
const whenBegun = sql<object, { began: number }>`select recovery_began as began from merchants`
const funds = sql<
  object,
  { available: bigint | null; warmUp: number }
>`select available, warm_up from merchants`

/** A sandbox, and a ledger that knows what was accepted but not what was sent. */
async function restored(t: TestContext) {
  const beside = await besideSandbox(t)
  const { ledger, config, client, accountId, orderNo, ended } = beside
  const presenceCheck = new PresenceCheck(systemClock)
  const queried: string[] = []
  const asking = (payoutId: string) =>
    askingAbout(
      { merchantId: 'acme', payoutId, accountId },
      (mchOrderNo) => client.query({ mchOrderNo }),
      ledger.db,
    )
  const account: AskedAccount = {
    ...ACCOUNT,
    accountId,
    queryPolicy: POLICY,
    query(mchOrderNo) {
      queried.push(mchOrderNo)
      return client.query({ mchOrderNo })
    },
    presenceCheck: {
      found: (mchOrderNo) => presenceCheck.found('acme', mchOrderNo),
      holds: (payoutId) => presenceCheck.holds('acme', asking(payoutId)),
    },
  }
  const deps = { ...recoveryDeps(), ledger, who: WHO }
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
    /** Paid at the gateway, without the ledger's knowledge. */
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
    async recover(overrides: Partial<AskedAccount> = {}, missing: Accounts['missing'] = new Map()) {
      const [raised] = await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
      assert.ok(raised)
      await listOpen(ledger.db, raised)
      const ending = await queryOpen(raised, {
        ...deps,
        missing,
        accounts: [{ ...account, ...overrides }],
      })
      const { kind, findings } = await lowerAfterRecovery(raised, WHO, ledger)
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

test('a payout paid after the restore point is paid, with its attempt, and one that was never sent continues', async (t) => {
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

test('a payout paid after the restore point, and before a try that sent nothing, has lost its attempt too', async (t) => {
  const { accept, payUnknown, recover, states, db } = await restored(t)
  await accept('paid')
  await payUnknown('paid')
  await db.run(sql<object>`update payouts set attempt = 1`, {})
  await recover()
  assert.deepEqual(await states(), [['paid', 'paid', null, 2]])
  assert.deepEqual(await db.run(attempts, {}), [{ payoutId: 'paid', attempt: 2, owner: 'recovery' }])
  assert.equal(
    (await db.run(sql<object>`select from ledger_server where loss_found is not null`, {})).length,
    1,
  )
})

test('an order of another amount is an anomaly, and is never sent once more: a person decides', async (t) => {
  const { accept, payUnknown, recover, states, ledger } = await restored(t)
  await accept('other')
  await payUnknown('other', 2n * AMOUNT)
  assert.deepEqual((await recover()).counts, { review: 1 })
  assert.deepEqual(await states(), [['other', 'review', 'order-shown', 1]])
  assert.deepEqual(await anomaliesOf(ledger), ['amount-mismatch'])
})

describe('"not found"', () => {
  test('does not count without a presence check: the merchant stays fenced, and a second run resumes', async (t) => {
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

  test('does not count while answers are mixed up', async (t) => {
    const { accept, payUnknown, recover, ledger, db, accountId } = await restored(t)
    await accept('paid', 'waits')
    await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
    await payUnknown('paid')
    await mixUp(db, { ...ACCOUNT, accountId })
    assert.deepEqual((await recover()).counts, { paid: 1, untold: 1 })
    await inOrderAgain(ledger.db)
    const queryPolicy = { ...POLICY, graceMs: 60_000 }
    assert.deepEqual((await recover({ queryPolicy })).counts, { paid: 1, untold: 1 }, 'the grace begins anew')
    assert.deepEqual((await recover()).counts, { paid: 1, 'never-sent': 1 })
  })

  test('does not count if answers were still mixed up when it was asked', async (t) => {
    const { accept, payUnknown, recover, client, db, accountId, orderNo } = await restored(t)
    await accept('paid', 'waits')
    await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
    await payUnknown('paid')
    const query = async (mchOrderNo: string): Promise<QueryAnswer> => {
      if (mchOrderNo === orderNo('waits')) await mixUp(db, { ...ACCOUNT, accountId })
      const answer = await client.query({ mchOrderNo })
      await inOrderAgain(db)
      return answer
    }
    const queryPolicy = { ...POLICY, confirmations: 1 }
    assert.deepEqual((await recover({ query, queryPolicy })).counts, { paid: 1, untold: 1 })
    assert.deepEqual((await recover()).counts, { paid: 1, 'never-sent': 1 })
  })

  test('counts once the grace and a lease have passed since the recovery began, and as often as the dialect requires', async (t) => {
    const { pay, accept, recover, raise, client, db } = await restored(t)
    await pay('known')
    await accept('waits')
    await raise()
    await db.run(fencedBefore, {})
    const raised = await raise()
    const waits: number[] = []
    const { signal } = new AbortController()
    await untilGraceIsOver(raised, 500, {
      ...{ db, clock: systemClock, signal },
      onWait: (leftMs) => waits.push(leftMs),
    })
    assert.ok(waits.length > 0 && waits.every((leftMs) => leftMs > 0 && leftMs <= 500), String(waits))
    const left: (number | undefined)[] = []
    const query = async (mchOrderNo: string): Promise<QueryAnswer> => {
      const [begun] = await db.run(whenBegun, {})
      left.push((await db.run(graceLeft, { began: begun?.began ?? 0, graceMs: 500 }))[0]?.ms)
      return client.query({ mchOrderNo })
    }
    const queryPolicy = { ...POLICY, confirmations: 3 }
    assert.equal((await recover({ query, queryPolicy })).kind, 'recovered')
    assert.deepEqual(left, [0, 0, 0])
  })

  test("has no shorter grace if the database's clock is set forward meanwhile", async (t) => {
    const { raise } = await restored(t)
    const raised = await raise()
    const waits: number[] = []
    const clock = {
      ...systemClock,
      monotonic: () => (waits.length > 0 ? 60 : 0) + (waits.length > 1 ? 40 : 0),
    }
    const db = { run: async () => [{ ms: waits.length > 0 ? 0 : 100 }] } as unknown as Database
    const { signal } = new AbortController()
    const onWait = (leftMs: number) => void waits.push(leftMs)
    await untilGraceIsOver(raised, 100, { db, clock, signal, onWait })
    assert.deepEqual(waits, [100, 40])
  })

  test('has its grace once, however often the recovery resumes, and anew after another server took over', async (t) => {
    const { raise, db } = await restored(t)
    const first = await raise()
    await db.run(begunBefore, {})
    const again = await raise()
    assert.ok(again.began < first.began)
    await db.run(fenceAll, {
      ...{ systemIdentifier: '1', timeline: 2n, databaseOid: 1n, merchantIds: [] },
      ...{ by: 'payoutd', reason: 'another server', oneStep: true },
    })
    assert.ok((await raise()).began >= first.began)
    const next = await raise()
    await db.run(begunBefore, {})
    await db.run(takenDown, {})
    assert.ok((await raise()).began >= next.began)
  })

  test('leaves the payout to a person if it was published as sent and duplicates may be paid', async (t) => {
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
    const recalled = await readBackPublished(['acme'], {
      ledger,
      codec,
      readTopic: async (_, onRecord) => {
        for (const record of records) await onRecord({ ...record, partition: 0 })
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
    await recover({ queryPolicy: { ...POLICY, duplicatesRefused: false } })
    assert.deepEqual((await states()).slice(1), [
      ['sent', 'review', 'proved-absent', 1],
      ['waits', 'queued', null, 0],
    ])
    assert.deepEqual(await brokenVersions(ledger), [])
  })
})

describe('answers that a recovery received before the ledger was set back once more no longer count:', () => {
  type Restored = Awaited<ReturnType<typeof restored>>

  async function failover({ db }: Restored): Promise<void> {
    const [server] = await db.run(serverIdentity, {})
    assert.ok(server)
    await db.run(fenceAll, {
      ...server,
      merchantIds: [],
      by: 'payoutd',
      reason: 'a standby took over',
      oneStep: true,
    })
  }

  test('after a failover into it, everything is asked about again, and every reason is kept', async (t) => {
    const world = await restored(t)
    const { pay, accept, recover, payUnknown, states, db, queried, orderNo } = world
    await pay('known')
    await accept('waits', 'sent')
    const silent = async (mchOrderNo: string): Promise<QueryAnswer> =>
      mchOrderNo === orderNo('waits')
        ? { kind: 'unknown', reason: 'timeout', exchange: {} }
        : world.client.query({ mchOrderNo })
    assert.deepEqual((await recover({ query: silent })).counts, { 'never-sent': 1, untold: 1 })
    await payUnknown('sent')
    await failover(world)
    await failover(world)
    const standing = await findFence(db, 'acme')
    assert.deepEqual([standing?.by, standing?.reason], ['asha', 'disk lost; a standby took over'])
    assert.deepEqual(await recover(), {
      ...{ ending: 'all-asked', kind: 'recovered' },
      counts: { paid: 1, 'never-sent': 1 },
    })
    assert.ok(queried.includes(orderNo('sent')))
    assert.deepEqual((await states()).slice(1), [
      ['sent', 'paid', null, 1],
      ['waits', 'queued', null, 0],
    ])
  })

  test('a process that is asking at that moment neither counts its answers nor takes the fence down', async (t) => {
    const world = await restored(t)
    const { pay, accept, recover, db } = world
    await pay('known')
    await accept('waits')
    let left = 2
    const query = async (mchOrderNo: string): Promise<QueryAnswer> => {
      if (--left === 0) await failover(world)
      return world.client.query({ mchOrderNo })
    }
    assert.deepEqual(await recover({ query }), {
      ending: 'all-asked',
      kind: 'outdated',
      counts: { untold: 1 },
    })
    assert.ok(await findFence(db, 'acme'))
    assert.equal((await recover()).kind, 'recovered')
  })

  test('if nothing is open, the fence stays up until somebody asks about what intake has yet to read', async (t) => {
    const world = await restored(t)
    const raised = await world.raise()
    await failover(world)
    assert.equal((await lowerAfterRecovery(raised, WHO, world.ledger)).kind, 'outdated')
    assert.equal((await world.recover()).kind, 'recovered')
  })

  test('a fence that was raised after another recovery ended stays up for a process that began before it', async (t) => {
    const { accept, recover, raise, db, ledger } = await restored(t)
    const raised = await raise()
    assert.equal((await recover()).kind, 'recovered')
    await accept('waits')
    const evidence = { merchantId: 'acme', feeEstimate: 0n, by: 'payoutd', reason: 'the ledger was set back' }
    await db.run(raiseFence, evidence)
    assert.equal((await lowerAfterRecovery(raised, WHO, ledger)).kind, 'outdated')
    assert.ok(await findFence(db, 'acme'))
  })

  test('evidence counts of a payout that the gateway was asked about and did not have, not of one still to be asked about', async (t) => {
    const { pay, accept, recover, ledger, db, orderNo, client } = await restored(t)
    await pay('known')
    await accept('answered', 'waits')
    const silent = async (mchOrderNo: string): Promise<QueryAnswer> =>
      mchOrderNo === orderNo('waits')
        ? { kind: 'unknown', reason: 'timeout', exchange: {} }
        : client.query({ mchOrderNo })
    await recover({ query: silent })
    const shown = (payoutId: string) =>
      storeEvidence({ ledger, log: silentLogger, queryPolicies: new Map() }, 'settle payouts', async (tx) => {
        const [payout] = await lockPayouts(tx, [{ merchantId: 'acme', payoutId }])
        return () => [neverSent(payout ?? assert.fail(), 'CALLBACK', 'it was sent', null, 'attempt')]
      })
    const counts = async () =>
      Object.fromEntries(
        (await db.run(tally, { merchantId: 'acme' })).map((each) => [each.found, each.count]),
      )
    await shown('waits')
    assert.deepEqual(await counts(), { 'never-sent': 1, null: 1 })
    await shown('answered')
    assert.deepEqual(await counts(), { null: 2 })
  })
})

test('if the gateway does not answer, the merchant stays fenced', async (t) => {
  const { accept, recover, db } = await restored(t)
  await accept(...Array.from({ length: 30 }, (_, i) => `p${i}`))
  const query = async (): Promise<QueryAnswer> => ({ kind: 'unknown', reason: 'timeout', exchange: {} })
  assert.deepEqual(await recover({ query }), { ending: 'silent', kind: 'open', counts: { untold: 30 } })
  assert.ok(await findFence(db, 'acme'))
})

test('merchants are fenced together, including those that sent before; an existing fence keeps who raised it', async (t) => {
  const { db, ledger } = await restored(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 5n })
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

test('a recovery that another server interrupts changes nothing there, and leaves the existing fence', async (t) => {
  const { accept, raise, states, ledger, db } = await restored(t)
  await db.run(noteServer, { systemIdentifier: '1', timeline: 1n, databaseOid: 1n })
  await accept('waits')
  const raised = await raise()
  const here = await onThisServer(ledger)
  await listOpen(here.db, raised)
  const before = await states()
  await db.run(fenceAll, {
    ...{ systemIdentifier: '1', timeline: 2n, databaseOid: 1n, merchantIds: ['acme'] },
    ...{ by: 'payoutd', reason: 'another server', oneStep: true },
  })
  await db.run(sameRound, {})
  await assert.rejects(listOpen(here.db, raised), /another database server took over/)
  await assert.rejects(lowerAfterRecovery(raised, WHO, here), /another database server took over/)
  assert.deepEqual(await states(), before)
  assert.equal((await findFence(db, 'acme'))?.round, raised.round)
  const again = await onThisServer(ledger)
  assert.equal((await lowerAfterRecovery(raised, WHO, again)).kind, 'open')
})

describe('while a merchant is fenced', () => {
  test('dispatch claims nothing; afterwards it asks for the balance anew, and sends a canary first', async (t) => {
    const { accept, pay, raise, recover, ledger, config, db } = await restored(t)
    await pay('known')
    await accept('waits')
    await raise()
    await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
    await setBalance(db, 'acme', 10n ** 9n)
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
    assert.deepEqual(await db.run(funds, {}), [{ available: null, warmUp: 0 }])
  })

  test('a payout that was never sent, according to the ledger, does not expire: it may have been paid', async (t) => {
    const { accept, payUnknown, raise, recover, states, ledger, client, accountId } = await restored(t)
    await accept('late')
    await payUnknown('late')
    await raise()
    await ledger.db.run(expired, {})
    const poller = payoutPoller({
      ledger,
      decisions: DECISIONS,
      queryPolicies: new Map([['acme', POLICY]]),
      counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
      queriers: new Map([
        [
          'acme',
          [
            {
              ...{ ...ACCOUNT, accountId, settingsHash: client.settingsHash, queryPolicy: POLICY },
              query: (mchOrderNo: string) => client.query({ mchOrderNo }),
              timeoutMs: 1_000,
            },
          ],
        ],
      ]),
      presenceCheck: new PresenceCheck(systemClock),
      log: silentLogger,
    })
    await poller.turn()
    await poller.drain()
    assert.deepEqual(await states(), [['late', 'queued', null, 0]])
    await recover()
    assert.deepEqual(await states(), [['late', 'paid', null, 1]])
  })

  test("a cancellation waits for the gateway's answer: cancelled if it has no such order, else settled", async (t) => {
    const { accept, payUnknown, raise, recover, states, ledger } = await restored(t)
    await accept('never', 'paid')
    await payUnknown('paid')
    await raise()
    for (const payoutId of ['never', 'paid']) {
      const outcomes = await cancelPayouts({ merchantId: 'acme', payoutIds: [payoutId], ...WHO }, ledger)
      assert.deepEqual(outcomes, [{ payoutId, kind: 'after-recovery', state: 'queued' }])
    }
    assert.equal((await recover()).kind, 'recovered')
    assert.deepEqual(await states(), [
      ['never', 'cancelled', 'cancelled', 0],
      ['paid', 'paid', null, 1],
    ])
    assert.deepEqual(await brokenVersions(ledger), [])
  })

  test('payoutd records who ended the recovery, whoever raised the fence, and what was cancelled', async (t) => {
    const { accept, ledger, db } = await restored(t)
    await accept('p')
    const [raised] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], {
      by: 'payoutd',
      reason: 'lost',
    })
    assert.ok(raised)
    const asked = { by: 'hr', reason: 'left the company' }
    await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...asked }, ledger)
    await lowerAfterRecovery(raised, WHO, ledger)
    assert.deepEqual((await db.run(notes, {})).at(-1), {
      note: 'hr: left the company (once recovered; asha: disk lost)',
    })
    assert.deepEqual((await db.run(acts, {})).at(-1), {
      actedBy: 'asha',
      command: 'recover',
      subjects: ['p'],
    })
  })

  test('a cancellation that arrives while the fence comes down is carried out', async (t) => {
    const { accept, raise, states, ledger, db } = await restored(t)
    await accept('p')
    const raised = await raise()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const holding = db.transaction('test', async (tx) => {
      await lockPayouts(tx, [{ merchantId: 'acme', payoutId: 'p' }])
      await released
    })
    const waiting = (count: number) =>
      eventually(`${count} that wait for a lock`, async () => (await db.run(blocked, {}))[0]?.count === count)
    const cancelling = cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, ledger)
    await waiting(1)
    const down = lowerAfterRecovery(raised, WHO, ledger)
    await Promise.race([down, waiting(2)])
    release()
    await Promise.all([holding, cancelling, down])
    assert.deepEqual(await states(), [['p', 'cancelled', 'cancelled', 0]])
  })
})

test("payouts under way in the restored ledger are settled by the gateway's reports", async (t) => {
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

test('if the settings lack a former account, a payout that may have been sent there waits for a person, and the recovery ends', async (t) => {
  const { accept, payUnknown, recover, states, db, ledger, accountId } = await restored(t)
  await accept('paid', 'there', 'waits', 'reviewed')
  await decided(ledger, 'reviewed', (payout) =>
    change(payout, become(payout, 'review', { reason: 'expired' }), 'CLOCK', null),
  )
  await payUnknown('paid')
  await db.run(sentElsewhere, {})
  assert.deepEqual(await recover({}, new Map([['former', 'mchId 7 at former.example']])), {
    ending: 'all-asked',
    kind: 'recovered',
    counts: { paid: 1, review: 3 },
  })
  assert.deepEqual(await states(), [
    ['paid', 'paid', null, 1],
    ['reviewed', 'review', 'expired', 0],
    ['there', 'review', 'account-unknown', 1],
    ['waits', 'review', 'account-unknown', 0],
  ])
  const terms = {
    accountId,
    settingsHash: 'h',
    duplicatesRefused: true,
    notPaidCodes: [],
    deadlineMs: 60_000,
  }
  const resend = (payoutId: string, attempt: number) => {
    const which = { deadline: null, cancelRequest: null, confirmedAbsentBy: null }
    const resolution = { kind: 'resend' as const, attempt, terms, ...which }
    return resolvePayout({ merchantId: 'acme', payoutId, ...WHO, shown: null, resolution }, ledger)
  }
  const refusals = [await resend('there', 1), await resend('waits', 0), await resend('reviewed', 0)].map(
    (each) => [each.kind, 'refusal' in each && each.refusal.kind],
  )
  assert.deepEqual(refusals, [
    ['refused', 'account-not-known'],
    ['refused', 'account-not-known'],
    ['refused', 'account-not-known'],
  ])
  const told = (await db.run(notes, {})).map(({ note }) => String(note))
  for (const account of ['mchId 7 at former.example', 'account gone'])
    assert.ok(told.some((note) => note.includes(account) && note.includes('formerAccounts')))
})

const sentElsewhere = sql<object>`
  update payouts set state = 'unknown', attempt = 1, account_id = 'gone', ready = false, unknown_since = now()
  where payout_id = 'there'`

test('a merchant without a known order, whose recovery cannot end, continues once somebody vouches for it alone that nothing was ever sent', async (t) => {
  const { accept, recover, raise, ledger, db } = await restored(t)
  await accept('waits')
  assert.equal((await recover()).kind, 'open')
  assert.match((await lowerFence('acme', WHO, ledger)).kept ?? '', /--nothing-lost --merchant/)
  const ofItAlone = { ...WHO, isNamed: true }
  const shown = neverSent(await payoutNow(ledger, 'waits'), 'CALLBACK', 'it is paid', null, 'attempt')
  await db.transaction('test', (tx) => storeDecisions(tx, ledger, [shown]))
  assert.match((await lowerFence('acme', ofItAlone, ledger)).kept ?? '', /asha raised the fence/)
  await db.run(sql<object>`delete from anomalies`, {})
  assert.deepEqual(await lowerFence('acme', ofItAlone, ledger), { merchantId: 'acme', kept: null })
  assert.equal(await findFence(db, 'acme'), null)
  await db.run(attempted, {})
  await raise()
  assert.match((await lowerFence('acme', ofItAlone, ledger)).kept ?? '', /asha raised the fence/)
})

const attempted = sql<object>`
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until)
  values ('acme', 'waits', 1, 'P1', 'me', now())`

async function payoutNow({ db }: Ledger, payoutId: string) {
  const [payout] = await db.transaction('test', (tx) => lockPayouts(tx, [{ merchantId: 'acme', payoutId }]))
  return payout ?? assert.fail(`there is no payout ${payoutId}`)
}

test('answers to a process that went on after the end of a recovery count in no later one', async (t) => {
  const { accept, payUnknown, recover, raise, states, db } = await restored(t)
  await accept('p')
  await payUnknown('other')
  const asked = await raise()
  await db.run(takenDown, {})
  await listOpen(db, asked)
  await db.run(keepFound, { merchantId: 'acme', payoutId: 'p', round: asked.round, found: 'never-sent' })
  await payUnknown('p')
  assert.deepEqual((await recover()).counts, { paid: 1 })
  assert.deepEqual(await states(), [['p', 'paid', null, 1]])
})
