import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { anomaliesOf, brokenVersions } from '../../../test/ledger.ts'
import {
  ABSENT,
  HAS_IT,
  type LostLedger,
  lostLedger,
  WHO,
  type WrittenMessage,
} from '../../../test/lost-ledger.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { cancelPayouts } from '../cancel-payouts.ts'
import { MOST_NAMED, reportWithoutCommand } from './without-command.ts'

const kept = sql<object, { count: number }>`select count(*)::int as count from published_messages`
const keepOne = sql<object>`
  insert into published_messages (merchant_id, payout_id, version, is_result, state, evidence, amount, currency, at)
  values ('acme', 'p', 2, false, 'submitting', 'COMMAND', 1, 'INR', now())`
const anomalies = sql<object, { payoutId: string | null; kind: string; detail: string }>`
  select payout_id, kind, detail from anomalies`
const manyMore = sql<{ count: number }>`
  insert into published_messages (merchant_id, payout_id, version, is_result, state, evidence, amount, currency, at)
  select 'acme', 'q' || n, 1, false, 'queued', 'COMMAND', 100, 'INR', now() from generate_series(1, ${'count'}) n`
const times = sql<object, { paidAt: number | null }>`select paid_at from payouts`

/** Its command is a dead letter when the lost ledger is read again, and is replayed after the recovery. */
async function replayed(
  lost: LostLedger,
  published: readonly WrittenMessage[],
  again: () => Promise<void> = () => lost.read(),
) {
  await lost.recover(published, ABSENT)
  assert.deepEqual(await lost.now(), [])
  await again()
  const [count] = await lost.db.run(kept, {})
  assert.deepEqual(
    [(await lost.wave()).map(({ payoutId }) => payoutId), count],
    [[], { count: 0 }],
    'nothing is sent, and its story is in the ledger alone',
  )
}

describe('a payout whose command arrives after a recovery that did not know it is not new:', () => {
  test('a payout that was published as sent goes to review, above all published versions', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await replayed(lost, await lost.lose())
    assert.deepEqual(
      [await lost.now(), await lost.publishedLines()],
      [['review 4 1'], ['QUEUED to REVIEW v4']],
    )
    assert.deepEqual([await anomaliesOf(lost.ledger), await brokenVersions(lost.ledger)], [[], []])
    await lost.recover([], HAS_IT)
    assert.deepEqual(await lost.now(), ['paid 5 1'])
  })

  test('a payout that was published as waiting may have been sent as well', async (t) => {
    const lost = await lostLedger(t)
    await lost.read()
    await replayed(lost, await lost.lose())
    assert.deepEqual(
      [await lost.now(), await lost.publishedLines()],
      [['review 2 0'], ['QUEUED to REVIEW v2']],
    )
  })

  test('a payout that was published as paid is paid, with its original time, and nothing is published again', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await lost.callBack()
    const paid = await lost.db.run(times, {})
    assert.ok(paid[0]?.paidAt)
    await replayed(lost, await lost.lose())
    assert.deepEqual([await lost.now(), await lost.publishedLines()], [['paid 4 1'], []])
    assert.deepEqual(await lost.db.run(times, {}), paid)
  })

  test('a payout that was published as cancelled is cancelled', async (t) => {
    const lost = await lostLedger(t)
    await lost.read()
    await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, lost.ledger)
    await replayed(lost, await lost.lose())
    assert.deepEqual([await lost.now(), await lost.publishedLines()], [['cancelled 2 0'], []])
  })

  for (const missing of ['events', 'results']) {
    test(`an end that is in no message of payout.${missing} is published there, with its original time`, async (t) => {
      const lost = await lostLedger(t)
      await lost.send()
      await lost.callBack()
      const at = await lost.timesTold()
      const published = await lost.lose()
      await replayed(
        lost,
        published.filter(({ topic }) => topic !== lost.ledger.topics[missing as 'events' | 'results']),
      )
      assert.deepEqual(await lost.now(), ['paid 4 1'])
      assert.equal((await lost.publishedLines()).length, 1)
      assert.deepEqual(await lost.timesTold(), [at.at(-1)])
    })
  }

  test("a payout that breaks today's rules is not rejected if it was sent, and is if its rejection was published", async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await replayed(lost, await lost.lose(), lost.readAgain)
    assert.deepEqual([await lost.now(), await lost.publishedLines()], [['review 4 1'], ['HELD to REVIEW v4']])
    await lost.lose()
    await lost.readAgain()
    await replayed(lost, await lost.lose(), lost.readAgain)
    assert.deepEqual([await lost.now(), await lost.publishedLines()], [['rejected 1 0'], []])
  })

  test('a payout whose amount differs from what was published as paid is an anomaly, and is not sent', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await lost.callBack()
    await replayed(lost, await lost.lose(), lost.readOther)
    assert.deepEqual([await lost.now(), await anomaliesOf(lost.ledger)], [['review 5 1'], ['end-published']])
  })

  test('a second recovery keeps nothing twice, and one after a second loss keeps it again', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    const published = await lost.lose()
    await lost.recover(published, ABSENT)
    await lost.recover(published, ABSENT)
    assert.deepEqual(await lost.db.run(kept, {}), [{ count: 3 }])
    await lost.lose()
    await replayed(lost, published)
    assert.deepEqual(await lost.now(), ['review 4 1'])
  })

  test('a payout that arrives between the list and the reading is treated like one that arrives later', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    const published = await lost.lose()
    await lost.recover(published, ABSENT, { listed: () => lost.read() })
    assert.deepEqual([await lost.now(), await lost.wave()], [['review 4 1'], []])
    assert.deepEqual(await lost.db.run(kept, {}), [{ count: 0 }])
    assert.deepEqual(await brokenVersions(lost.ledger), [])
  })

  test('a payout that arrives between the list and the reading, and was never published before, is sent as usual', async (t) => {
    const lost = await lostLedger(t)
    const published: WrittenMessage[] = []
    await lost.recover(published, ABSENT, {
      async listed() {
        await lost.read()
        published.push(...(await lost.published()))
      },
    })
    assert.equal(published.length, 1)
    assert.deepEqual(
      (await lost.wave()).map(({ payoutId }) => payoutId),
      ['p'],
    )
  })

  test('what is kept of a payout that exists by then is left to the recovery when its command is repeated', async (t) => {
    const lost = await lostLedger(t)
    await lost.read()
    await lost.db.run(keepOne, {})
    await lost.read()
    assert.deepEqual(await lost.db.run(kept, {}), [{ count: 1 }])
  })

  test('and a payout that was never published is sent as usual', async (t) => {
    const lost = await lostLedger(t)
    await lost.recover([], ABSENT)
    await lost.read()
    assert.deepEqual(
      (await lost.wave()).map(({ payoutId }) => payoutId),
      ['p'],
    )
  })
})

test('a payout that waits under a version that was published as something else is published again above it, and is held if it was held there', async (t) => {
  const lost = await lostLedger(t)
  await lost.read('earlier')
  await lost.read('later')
  const published = await lost.lose()
  await lost.raise()
  await lost.read('later')
  await lost.read('earlier')
  const before = (await lost.publishedLines()).length
  await lost.recover(published, ABSENT)
  assert.deepEqual((await lost.publishedLines()).slice(before).sort(), [
    'HELD to HELD v2',
    'QUEUED to HELD v2',
  ])
  assert.deepEqual(await brokenVersions(lost.ledger), [])
  await lost.recover(published, ABSENT)
  assert.equal((await lost.publishedLines()).length, before + 2)
})

describe('a payout that was published, but whose command is gone from Kafka too,', () => {
  test('is named by an anomaly and counted, once, until its command arrives', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await lost.recover(await lost.lose(), ABSENT)
    assert.equal(await reportWithoutCommand('acme', lost.ledger), 1)
    assert.equal(await reportWithoutCommand('acme', lost.ledger), 1)
    const [told, ...more] = await lost.db.run(anomalies, {})
    assert.deepEqual([told?.payoutId, told?.kind, more], ['p', 'published-and-gone', []])
    assert.match(told?.detail ?? '', /^it was published as processing \(version 3\), the ledger lost it/)
    await lost.read()
    assert.equal(await reportWithoutCommand('acme', lost.ledger), 0)
  })

  test('and that had ended was published to its end', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await lost.callBack()
    await lost.recover(await lost.lose(), ABSENT)
    assert.equal(await reportWithoutCommand('acme', lost.ledger), 0)
    assert.deepEqual(await anomaliesOf(lost.ledger), [])
  })

  test('is counted if there are many more like it', async (t) => {
    const lost = await lostLedger(t)
    await lost.send()
    await lost.recover(await lost.lose(), ABSENT)
    await lost.db.run(manyMore, { count: MOST_NAMED + 1 })
    assert.equal(await reportWithoutCommand('acme', lost.ledger), MOST_NAMED + 2)
    const told = await lost.db.run(anomalies, {})
    assert.equal(told.length, MOST_NAMED + 1)
    assert.match(
      told.find(({ payoutId }) => payoutId === null)?.detail ?? '',
      /^2 more payouts were published/,
    )
  })
})

test('no promise resends a payout that was published as under way at the gateway and is not found', async (t) => {
  const lost = await lostLedger(t)
  await lost.send()
  const published = await lost.lose()
  await lost.read()
  await lost.recover(published, ABSENT, { duplicatesRefused: true })
  const sent = (await lost.wave()).map(({ payoutId }) => payoutId)
  assert.deepEqual([await lost.now(), sent], [['review 4 1'], []])
})
