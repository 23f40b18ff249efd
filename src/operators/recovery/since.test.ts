import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { payoutsNamed } from '../../queries/sql/payouts/list.ts'
import { historyOf } from '../../queries/sql/payouts/story.ts'
import { AP1, acceptedAs, reported, setBackLedger } from './set-back.fixture.ts'

const paid = sql<object, { at: Instant }>`select paid_at as at from payouts`

test('a list and a story tell when a payout was paid, also after a recovery has read that back', async (t) => {
  const lost = await setBackLedger(t)
  const said = { status: 'success', ...AP1 } as const
  await lost.read()
  await lost.backUp()
  await lost.wave()
  await lost.say(acceptedAs('AP1'))
  await lost.callBack(said)
  const [before] = await lost.db.run(paid, {})
  const at = before?.at ?? assert.fail('it is not paid')
  await lost.lose()
  await lost.restoreBackUp()
  await delay(1_000)
  await lost.recover(reported(said))
  const [listed] = await lost.db.run(payoutsNamed, {
    merchantId: 'acme',
    payoutIds: ['p'],
    states: ['paid'],
    limit: 9,
  })
  const story = await lost.db.run(historyOf, { merchantId: 'acme', payoutId: 'p' })
  const told = story.find(({ toState }) => toState === 'paid')
  for (const since of [listed?.since, told?.at])
    assert.ok(since && since < at + 1_000, `it was paid at ${at}, but since ${since}`)
})
