import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anomaliesOf } from '../../../test/ledger.ts'
import { ABSENT, HAS_IT, lostLedger, WHO } from '../../../test/lost-ledger.ts'
import { BY_PAYOUTD } from '../../ledger/evidence/proven-losses.ts'
import { fenceAll } from '../../ledger/sql/server-identity.ts'
import { lowerFence } from './nothing-lost.ts'

test('a payout that was paid and published as paid stays paid, whatever rules apply when its command is read again', async (t) => {
  const lost = await lostLedger(t)
  await lost.send()
  await lost.callBack()
  const published = await lost.lose()
  await lost.raise()
  await lost.readAgain()
  assert.deepEqual([await lost.now(), await lost.publishedLines()], [['held 0 0'], []])
  await lost.recover(published, HAS_IT)
  assert.deepEqual([await lost.now(), await lost.publishedLines()], [['paid 4 1'], []])
  assert.deepEqual(await anomaliesOf(lost.ledger), [])
})

test('a payout that was published as under way ends as the gateway reports', async (t) => {
  const lost = await lostLedger(t)
  await lost.send()
  const published = await lost.lose()
  await lost.raise()
  await lost.readAgain()
  await lost.recover(published, HAS_IT)
  assert.deepEqual(
    [await lost.now(), await lost.publishedLines()],
    [['paid 4 1'], ['HELD to PAID v4', 'PAID v4']],
  )
})

test('a payout that was published as sent, but that the gateway does not have, goes to review', async (t) => {
  const lost = await lostLedger(t)
  await lost.send()
  const published = await lost.lose()
  await lost.raise()
  await lost.readAgain()
  await lost.recover(published, ABSENT)
  assert.deepEqual([await lost.now(), await lost.publishedLines()], [['review 4 1'], ['HELD to REVIEW v4']])
})

test('a payout that the gateway has, but that was never published, is not rejected', async (t) => {
  const lost = await lostLedger(t)
  await lost.raise()
  await lost.readAgain()
  await lost.recover([], HAS_IT)
  assert.deepEqual(
    [await lost.now(), await lost.publishedLines()],
    [['paid 1 1'], ['null to PAID v1', 'PAID v1']],
  )
})

test('payoutd keeps what the gateway reports before the recovery, and asks about it', async (t) => {
  const lost = await lostLedger(t)
  await lost.raise()
  await lost.readAgain()
  await lost.callBack()
  assert.deepEqual(await lost.now(), ['review 1 0'])
  await lost.recover([], HAS_IT)
  assert.deepEqual(await lost.now(), ['paid 2 1'])
})

test('a payout that was never sent is rejected and published like any other, once the gateway was asked', async (t) => {
  const lost = await lostLedger(t)
  await lost.raise()
  await lost.readAgain()
  await lost.recover([], ABSENT)
  assert.deepEqual([await lost.now(), await lost.publishedLines()], [['rejected 1 0'], REJECTED])
})

test('a payout that was published as rejected before is not published again', async (t) => {
  const lost = await lostLedger(t)
  await lost.readAgain()
  const published = await lost.lose()
  await lost.raise()
  await lost.readAgain()
  await lost.recover(published, ABSENT)
  assert.deepEqual([await lost.now(), await lost.publishedLines()], [['rejected 1 0'], []])
})

for (const whenRead of ['before the recovery', 'while it runs'])
  test(`the faults of a rejection are published with a result that was not published before, if its command is read ${whenRead}`, async (t) => {
    const lost = await lostLedger(t)
    await lost.readAgain()
    const published = (await lost.lose()).filter(({ topic }) => topic !== lost.ledger.topics.results)
    const isBefore = whenRead === 'before the recovery'
    await lost.raise()
    if (isBefore) await lost.readAgain()
    await lost.recover(published, ABSENT, { listed: async () => (isBefore ? undefined : lost.readAgain()) })
    assert.deepEqual(
      [await lost.now(), await lost.publishedLines()],
      [['rejected 1 0'], ['REJECTED v1 maximum']],
    )
  })

test('a payout that was published as queued and never sent is rejected under a version of its own', async (t) => {
  const lost = await lostLedger(t)
  await lost.read()
  const published = await lost.lose()
  await lost.raise()
  await lost.readAgain()
  await lost.recover(published, ABSENT)
  assert.deepEqual(
    [await lost.now(), await lost.publishedLines()],
    [['rejected 2 0'], ['HELD to REJECTED v2', 'REJECTED v2 maximum']],
  )
})

test('a command that arrives while payoutd asks the gateway is rejected when the fence comes down, also when a person vouches that nothing was lost', async (t) => {
  const lost = await lostLedger(t)
  await lost.recover([], ABSENT, { asked: () => lost.readAgain() })
  assert.deepEqual([await lost.now(), await lost.publishedLines()], [['rejected 1 0'], REJECTED])
  await lost.lose()
  const failover = { by: BY_PAYOUTD, reason: 'a failover', oneStep: true }
  const server = { systemIdentifier: '1', timeline: 2n, databaseOid: 1n }
  await lost.db.run(fenceAll, { ...server, merchantIds: ['acme'], ...failover })
  await lost.readAgain()
  assert.deepEqual(await lowerFence('acme', WHO, lost.ledger), { merchantId: 'acme', kept: null })
  assert.deepEqual([await lost.now(), await lost.publishedLines()], [['rejected 1 0'], REJECTED])
})

test('an order that the gateway reported before its command arrived is not rejected', async (t) => {
  const lost = await lostLedger(t)
  await lost.callBack()
  await lost.readAgain()
  assert.deepEqual(await lost.now(), ['review 1 0'])
  await lost.recover([], HAS_IT)
  assert.deepEqual(await lost.now(), ['paid 2 1'])
})

const REJECTED = ['null to REJECTED v1', 'REJECTED v1 maximum']

test('when the gateway reports an order that it did not have, and whose payout was rejected for that, everything is asked about anew', async (t) => {
  const lost = await lostLedger(t)
  await lost.raise()
  await lost.readAgain()
  await lost.read('other')
  const asked = async () => void (await lost.callBack())
  await assert.rejects(lost.recover([], ABSENT, { asked }), /'outdated'.*'recovered'/s)
  // The other payout is a duplicate of this one, which may be paid.
  assert.deepEqual(await lost.now(), ['held 1 0', 'rejected 1 0'])
})

test('when the gateway reports an order that it did not have a moment ago, everything is asked about anew', async (t) => {
  const lost = await lostLedger(t)
  await lost.send()
  await lost.read('other')
  const asked = async () => void (await lost.callBack())
  await assert.rejects(lost.recover([], ABSENT, { asked }), /'outdated'.*'recovered'/s)
  assert.deepEqual(await lost.now(), ['held 1 0', 'paid 4 1'])
})

for (const status of ['failed', 'processing'] as const)
  test(`when payoutd asks, and the gateway answers ${status} for an order that it did not have a moment ago, everything is asked about anew`, async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await lost.read('other')
    const asked = async () => void (await lost.answer(status))
    await assert.rejects(lost.recover([], ABSENT, { asked }), /'outdated'.*'recovered'/s)
    assert.deepEqual(await lost.now(), ['held 1 0', 'processing 3 1'])
  })

test('a repeated report about a payout that has ended starts no new round of queries', async (t) => {
  const lost = await lostLedger(t)
  await lost.send()
  await lost.callBack()
  await lost.read('other')
  await lost.recover([], ABSENT, { asked: async () => void (await lost.answer('success')) })
})

test('a payout that was refused after a recovery, and that the gateway reports as paid, holds the same payment', async (t) => {
  const lost = await lostLedger(t)
  await lost.raise()
  await lost.readAgain()
  await lost.recover([], ABSENT)
  await lost.callBack()
  await lost.read('again')
  assert.deepEqual(await lost.now(), ['held 1 0', 'rejected 1 0'])
})
