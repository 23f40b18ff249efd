import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testLedger } from '../../../test/ledger.ts'
import { ABSENT, HAS_IT, type LostLedger, lostLedger } from '../../../test/lost-ledger.ts'
import { NEVER_SENT } from '../../domain/payout/ledger-lacks-attempt.ts'
import { become } from '../../domain/payout/transition.ts'
import { BY_PAYOUTD } from '../../ledger/evidence/proven-losses.ts'
import { watchServer } from '../../ledger/failover-watch.ts'
import { fencedMerchants, storeDecisions } from '../../ledger/ledger.ts'
import { raiseFence } from '../../ledger/sql/fence.ts'
import { fenceAll, noteServer, serverIdentity } from '../../ledger/sql/server-identity.ts'
import { silentLogger } from '../../platform/log.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { decided } from '../operations.fixture.ts'
import { lowerFence } from './nothing-lost.ts'
import { publishedBeyond } from './published-beyond.ts'
import { fence } from './recovery.ts'

const { ledger } = await testLedger({ after })
const { db } = ledger
const CLOCK = { source: 'CLOCK', exchange: null } as const
const who = { by: 'asha', reason: 'the standby was synchronous' }
const acts = sql<object, { actedBy: string; command: string }>`select acted_by, command from operator_acts`

async function promoted({ db }: LostLedger): Promise<void> {
  const [server] = await db.run(serverIdentity, {})
  assert.ok(server)
  const raised = { by: BY_PAYOUTD, reason: 'a standby was promoted', oneStep: true }
  await db.run(fenceAll, { ...server, merchantIds: ['acme'], ...raised })
}

async function failover(): Promise<void> {
  await db.run(sql<object>`truncate merchants, anomalies, operator_acts, recovered_payouts`, {})
  await takeOver('a standby was promoted')
}

async function takeOver(reason: string): Promise<void> {
  const [server] = await db.run(serverIdentity, {})
  assert.ok(server)
  await db.run(fenceAll, {
    ...server,
    merchantIds: ['acme', 'globex'],
    by: BY_PAYOUTD,
    reason,
    oneStep: true,
  })
}

test('when a person vouches that nothing was lost, a fence that payoutd raised comes down, and payoutd records who vouched', async () => {
  await failover()
  assert.deepEqual(await lowerFence('acme', who, ledger), { merchantId: 'acme', kept: null })
  assert.deepEqual([...(await fencedMerchants(db))], ['globex'])
  assert.deepEqual(await db.run(acts, {}), [{ actedBy: 'asha', command: 'recover --nothing-lost' }])
  assert.match((await lowerFence('acme', who, ledger)).kept ?? '', /it is not fenced/)
})

test('the fence stays if evidence arrived of something that the ledger lacks, of any merchant', async () => {
  await failover()
  const anomaly = {
    ...{ merchantId: 'acme', payoutId: 'p', orderNo: 'P1', exchange: null },
    ...({ kind: NEVER_SENT, detail: 'the gateway answered attempt 1', source: 'APPLY' } as const),
  }
  await db.transaction('test', (tx) => storeDecisions(tx, ledger, [{ anomaly }]))
  assert.match((await lowerFence('acme', who, ledger)).kept ?? '', /the gateway answered attempt 1/)
  assert.match(
    (await lowerFence('globex', who, ledger)).kept ?? '',
    /about merchant acme: the gateway answered attempt 1/,
  )
  assert.deepEqual([...(await fencedMerchants(db))].sort(), ['acme', 'globex'])
})

test('the fence stays if such evidence arrived again after an earlier time', async () => {
  await failover()
  const anomaly = {
    ...{ merchantId: 'acme', payoutId: 'p', orderNo: 'P1', exchange: null },
    ...({ kind: NEVER_SENT, detail: 'the gateway answered attempt 1', source: 'APPLY' } as const),
  }
  const come = () => db.transaction('test', (tx) => storeDecisions(tx, ledger, [{ anomaly }]))
  await come()
  await db.run(
    sql<object>`update anomalies set at = now() - interval '1 day', last_at = now() - interval '1 day'`,
    {},
  )
  await come()
  assert.match((await lowerFence('acme', who, ledger)).kept ?? '', /the gateway answered attempt 1/)
})

test('a fence that a person raised, or with a recovery under way, stays up', async () => {
  await db.run(sql<object>`truncate merchants, anomalies, operator_acts, recovered_payouts`, {})
  await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'meera', reason: 'restored' })
  assert.match((await lowerFence('acme', who, ledger)).kept ?? '', /meera raised the fence \(restored\)/)
  await failover()
  await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'meera', reason: 'the standby lagged' })
  assert.match(
    (await lowerFence('acme', who, ledger)).kept ?? '',
    /payoutd recover of this merchant has begun/,
  )
  assert.equal((await lowerFence('globex', who, ledger)).kept, null)
  await failover()
  await db.run(sql<object>`insert into recovered_payouts (merchant_id, payout_id) values ('acme', 'p')`, {})
  assert.match(
    (await lowerFence('acme', who, ledger)).kept ?? '',
    /payoutd recover of this merchant has begun/,
  )
})

for (const [steps, kept] of [
  [1n, null],
  [2n, /more than one failover \(the database moved from timeline -1 to 1/],
] as const)
  test(`${steps} failovers that no payoutd process saw leave a fence that ${kept ? 'such a word does not take' : 'it takes'} down`, async (t) => {
    const world = await lostLedger(t)
    await world.send()
    await world.lose()
    await world.read()
    const [server] = await world.db.run(serverIdentity, {})
    assert.ok(server)
    await world.db.run(noteServer, { ...server, timeline: server.timeline - steps })
    await watchServer(['acme'], silentLogger)(world.db)
    const lowered = await lowerFence('acme', who, world.ledger)
    assert.match(String(lowered.kept), kept ?? /null/)
    assert.equal((await world.wave()).length, kept ? 0 : 1)
  })

test('vouching for the last failover does not cover an earlier one that nobody has recovered from', async () => {
  await failover()
  await takeOver('it went back, by plan')
  const { kept } = await lowerFence('acme', who, ledger)
  assert.match(kept ?? '', /a standby was promoted; it went back, by plan/)
  await failover()
  await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'meera', reason: 'the standby lagged' })
  await takeOver('it went back, by plan')
  assert.notEqual((await lowerFence('acme', who, ledger)).kept, null)
  assert.deepEqual([...(await fencedMerchants(db))].sort(), ['acme', 'globex'])
})

for (const [found, isLost] of [
  ['was published and lost', true],
  ['the gateway has, and nobody was told of', true],
  ['was lost by nobody', false],
] as const)
  test(`if a recovery of one merchant finds that ${found}, that is ${isLost ? 'a' : 'no'} loss for who vouches for another`, async (t) => {
    const lost = await lostLedger(t)
    const isPublished = found === 'was published and lost'
    if (isPublished) await lost.send()
    const published = await lost.lose()
    const [server] = await lost.db.run(serverIdentity, {})
    assert.ok(server)
    const reason = { by: BY_PAYOUTD, reason: 'a standby was promoted', oneStep: true }
    await lost.db.run(fenceAll, { ...server, merchantIds: ['acme', 'globex'], ...reason })
    await lost.read()
    await lost.recover(published, isLost ? HAS_IT : ABSENT)
    const { kept } = await lowerFence('globex', who, lost.ledger)
    if (isLost) assert.match(kept ?? '', /payoutd recover has found that the ledger lost something/)
    else assert.equal(kept, null)
  })

const another = sql<{ reason: string }>`update ledger_server set predecessor = ${'reason'}`

test('if another ledger published before, the fence comes down only when the operator names its merchant alone', async (t) => {
  const { ledger } = await testLedger(t)
  const [server] = await ledger.db.run(serverIdentity, {})
  assert.ok(server)
  await ledger.db.run(noteServer, server)
  const reason = 'results were published before; the ledger is empty'
  await ledger.db.run(another, { reason })
  const raised = { by: BY_PAYOUTD, reason, feeEstimate: 0n }
  await ledger.db.run(raiseFence, { merchantId: 'acme', ...raised })
  assert.match((await lowerFence('acme', who, ledger)).kept ?? '', /published before.*--merchant/)
  assert.deepEqual([...(await fencedMerchants(ledger.db))], ['acme'])
  assert.equal((await lowerFence('acme', { ...who, isNamed: true }, ledger)).kept, null)
})

for (const [what, lost, kept] of [
  ['all that was published', false, /^$/],
  [
    'less of a payout than was published',
    true,
    /payout p of acme was published as version 3, and the ledger has version 1/,
  ],
] as const)
  test(`beside a ledger that has ${what} it ${lost ? 'stays, though no evidence has come' : 'comes down'}`, async (t) => {
    const world = await lostLedger(t)
    await world.send()
    const published = lost ? await world.lose() : await world.published()
    if (lost) await world.read()
    await promoted(world)
    const lacking = await publishedBeyond(world.topics(published))
    assert.match((await lowerFence('acme', { ...who, lacking }, world.ledger)).kept ?? '', kept)
  })

test('naming a merchant does not help either, if more of it was published than the ledger knows to have been sent', async (t) => {
  const world = await lostLedger(t)
  await world.raise()
  await world.db.run(sql<object>`update merchants set recovery_began = now()`, {})
  const said = { ...who, isNamed: true, lacking: 'payout p' }
  assert.match(
    (await lowerFence('acme', said, world.ledger)).kept ?? '',
    /the ledger lost something \(payout p\)/,
  )
  assert.equal((await lowerFence('acme', { ...said, lacking: null }, world.ledger)).kept, null)
})

test('a published payout that the ledger lacks is found, but not one of a merchant that the ledger does not have', async (t) => {
  const world = await lostLedger(t)
  await world.send()
  const published = await world.lose()
  assert.equal(await publishedBeyond(world.topics(published)), null)
  await world.raise()
  assert.match((await publishedBeyond(world.topics(published))) ?? '', /payout p of acme .* does not have it/)
})

test('it stays beside a ledger that came to other states under the versions that were published', async (t) => {
  const world = await lostLedger(t)
  await world.send()
  const published = await world.lose()
  await world.read()
  for (const [state, reason] of [
    ['review', 'expired'],
    ['failed', 'asked them'],
  ] as const)
    await decided(world.ledger, 'p', (before) => ({
      change: { before, after: become(before, state, { reason }), ...CLOCK },
    }))
  await promoted(world)
  const lacking = await publishedBeyond(world.topics(published))
  assert.match(
    (await lowerFence('acme', { ...who, lacking }, world.ledger)).kept ?? '',
    /payout p of acme was published as queued \(version 1\), which its history does not have/,
  )
})

for (const isLost of [true, false])
  test(`beside a ledger that ${isLost ? 'lacks' : 'has'} an anomaly that was published it ${isLost ? 'stays' : 'comes down'}`, async (t) => {
    const world = await lostLedger(t)
    await world.send()
    await world.callBack({ agentpayOrderId: 'AP2', status: 'processing' })
    const published = await world.published()
    if (isLost) await world.db.run(sql<object>`delete from anomalies`, {})
    await promoted(world)
    const lacking = await publishedBeyond(world.topics(published))
    const { kept } = await lowerFence('acme', { ...who, lacking }, world.ledger)
    if (isLost) assert.match(kept ?? '', /anomaly .* was published, and the ledger does not have it/)
    else assert.equal(kept, null)
  })
