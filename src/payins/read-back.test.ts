import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, anomaliesOf } from '../../test/ledger.ts'
import { brokenPayins, outboxOf, payinLedger, report, storedPayins } from '../../test/payins.ts'
import type { TopicRecord } from '../platform/kafka/records.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { applyPayinEvidenceBatch } from './outcomes.ts'
import { readBackPayins } from './read-back.ts'

const setBack = sql<object>`
  update payins set state = 'open', version = 2, reason = null, utr = null, paid_at = null, due_at = now()`
const forgetHistory = sql<object>`delete from history where payin_id is not null and version > 2`

const movedOn = sql<object>`update payins set version = 3`

/** A payin that waits for its payer, at version 2. */
async function world(t: TestContext) {
  const { ledger, codec, outcomeDeps, create } = await payinLedger(t)
  const { db, topics } = ledger
  const payin = await create('a')
  const results = () => db.run(outboxOf, { topic: topics.payinResults })
  return {
    ledger,
    async callBack(status: 'paid' | 'failed', utr?: string) {
      const said = report(payin, status)
      const reported = { ...said, utr: utr ?? said.utr, mchId: '1000100', backType: null, channelCode: null }
      const { payinId } = payin
      const evidence = { merchantId: 'acme', payinId, source: 'CALLBACK' as const, report: reported }
      await applyPayinEvidenceBatch([{ ...evidence, accountIds: [ACCOUNT.accountId] }], outcomeDeps)
    },
    async restore() {
      await db.run(setBack, {})
      await db.run(forgetHistory, {})
    },
    moveOn: () => db.run(movedOn, {}),
    async recover() {
      const published = await results()
      return readBackPayins(['acme'], {
        ...{ ledger, codec },
        async readTopic(_, onRecord) {
          for (const { key, value } of published)
            await onRecord({ key: Buffer.from(key), value } as TopicRecord)
        },
      })
    },
    now: async () => (await db.run(storedPayins, {})).map(({ state, version }) => `${state} v${version}`)[0],
    async published() {
      const published: string[] = []
      for (const { value } of await results()) {
        const decoded = await codec.decode(value)
        assert.ok(decoded.kind === 'decoded')
        const { status, version } = decoded.value as { status: string; version: number }
        published.push(`${status} v${version}`)
      }
      return published
    },
    broken: () => db.run(brokenPayins, {}),
  }
}

test('payoutd takes over a published end that the ledger lost, without publishing it again, and publishes a late payment above it', async (t) => {
  const lost = await world(t)
  await lost.callBack('failed')
  await lost.restore()
  assert.equal(await lost.recover(), 1)
  assert.deepEqual([await lost.now(), await lost.published()], ['failed v3', ['FAILED v3']])
  await lost.callBack('paid')
  assert.deepEqual(await lost.published(), ['FAILED v3', 'PAID v4'])
  assert.deepEqual(await lost.broken(), [])
  assert.deepEqual(await anomaliesOf(lost.ledger), [])
})

test('payoutd publishes a payment again above a published failure if both had one version', async (t) => {
  const lost = await world(t)
  await lost.callBack('failed')
  await lost.restore()
  await lost.callBack('paid')
  await lost.recover()
  assert.deepEqual(
    [await lost.now(), await lost.published()],
    ['paid v4', ['FAILED v3', 'PAID v3', 'PAID v4']],
  )
  assert.equal(await lost.recover(), 0)
})

test('a published payment that the ledger lost wins over every later report of the gateway', async (t) => {
  const lost = await world(t)
  await lost.callBack('paid')
  await lost.restore()
  await lost.callBack('failed')
  await lost.recover()
  assert.deepEqual(
    [await lost.now(), await lost.published()],
    ['paid v4', ['PAID v3', 'FAILED v3', 'PAID v4']],
  )
  assert.equal(await lost.recover(), 0)
})

test('a published payment that the ledger lost wins over a failure that the ledger reached above its version', async (t) => {
  const lost = await world(t)
  await lost.callBack('paid')
  await lost.restore()
  await lost.moveOn()
  await lost.callBack('failed')
  await lost.recover()
  assert.deepEqual(
    [await lost.now(), await lost.published()],
    ['paid v5', ['PAID v3', 'FAILED v4', 'PAID v5']],
  )
  assert.equal(await lost.recover(), 0)
})

test('payoutd takes over a late payment, published above the failure, with its version', async (t) => {
  const lost = await world(t)
  await lost.callBack('failed')
  await lost.callBack('paid')
  await lost.restore()
  await lost.recover()
  assert.deepEqual([await lost.now(), await lost.published()], ['paid v4', ['FAILED v3', 'PAID v4']])
})

test('another UTR than the published one is an anomaly, and nothing changes', async (t) => {
  const lost = await world(t)
  await lost.callBack('paid')
  await lost.restore()
  await lost.callBack('paid', '632611200009')
  await lost.recover()
  assert.deepEqual(await lost.now(), 'paid v3')
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})

test('the published UTR is the same in another case', async (t) => {
  const lost = await world(t)
  await lost.callBack('paid', 'N632611200001')
  await lost.restore()
  await lost.callBack('paid', 'n632611200001')
  assert.equal(await lost.recover(), 0)
  assert.deepEqual(await anomaliesOf(lost.ledger), [])
})

test('another UTR than the published one is an anomaly, even if the ledger reached it above that version', async (t) => {
  const lost = await world(t)
  await lost.callBack('paid')
  await lost.restore()
  await lost.moveOn()
  await lost.callBack('paid', '632611209999')
  await lost.recover()
  assert.deepEqual(await lost.published(), ['PAID v3', 'PAID v4'])
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})

test('if nothing was lost nothing changes', async (t) => {
  const kept = await world(t)
  await kept.callBack('failed')
  await kept.callBack('paid')
  assert.equal(await kept.recover(), 0)
  assert.deepEqual([await kept.now(), await kept.published()], ['paid v4', ['FAILED v3', 'PAID v4']])
})
