import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT, accepted, payoutsOf, testLedger } from '../../test/ledger.ts'
import { PositiveControl } from '../gateway/positive-control.ts'
import type { QueryAnswer } from '../payout/answers.ts'
import { command } from '../payout/command.fixture.ts'
import { JUDGEMENT } from '../payout/judgement.ts'
import type { Timetable } from '../payout/transition.ts'
import { systemClock } from '../platform/clock.ts'
import { silentLogger } from '../platform/log.ts'
import { Metrics } from '../platform/metrics.ts'
import { sql } from '../platform/postgres.ts'
import { type Asker, Poller } from './poller.ts'

const TABLE: Timetable = { queryAfterMs: [1_000], graceMs: 5_000, confirmations: 2, resendWhenAbsent: true }
const HANGING = 200

/** Every payout is unknown, and asked about next; those of acme waited for longest. */
const allUnknown = sql<object>`
  update payouts
  set state = 'unknown', attempt = 1, ready = false, unknown_since = now(),
      due_at = now() - case merchant_id when 'acme' then interval '1 hour' else interval '1 second' end`

/** What time alone moves: a schedule, an ended lease, and a deadline of one that is asked about. */
const timersOfAcme = sql<object>`
  update payouts
  set state = case payout_id when 'scheduled' then 'held' when 'leased' then 'submitting' else state end,
      reason = case payout_id when 'scheduled' then 'schedule' end,
      attempt = case payout_id when 'scheduled' then 0 else 1 end,
      deadline = case payout_id when 'expired' then now() else deadline end,
      due_at = now()
  where payout_id in ('scheduled', 'leased', 'expired')`

test('while all queries of one merchant hang, timers run and another merchant is asked about', async (t) => {
  const { ledger, config } = await testLedger(t)
  const ids = ['scheduled', 'leased', 'expired', ...Array.from({ length: HANGING }, (_, i) => `a${i}`)]
  await accepted(ledger, config, [...ids.map((id) => command(id)), command('b', { merchantId: 'bolt' })])
  await ledger.db.run(allUnknown, {})
  await ledger.db.run(timersOfAcme, {})

  const never = Promise.withResolvers<QueryAnswer>()
  let hanging = 0
  const asked: string[] = []
  const asker = (query: Asker['query']): readonly [Asker] => [
    { ...ACCOUNT, table: TABLE, query, timeoutMs: 60_000 },
  ]
  const poller = new Poller({
    ledger,
    judge: JUDGEMENT,
    tables: new Map([
      ['acme', TABLE],
      ['bolt', TABLE],
    ]),
    askers: new Map([
      [
        'acme',
        asker(async () => {
          hanging++
          return never.promise
        }),
      ],
      [
        'bolt',
        asker(async (orderNo) => {
          asked.push(orderNo)
          return { kind: 'unknown', reason: 'timeout', exchange: {} }
        }),
      ],
    ]),
    control: new PositiveControl(systemClock),
    counted: new Metrics().counter('evidence', 'evidence', ['source', 'outcome']),
    log: silentLogger,
  })
  t.after(async () => {
    never.resolve({ kind: 'unknown', reason: 'timeout', exchange: {} })
    await poller.drain()
  })
  for (let turn = 0; turn < 3; turn++) await poller.turn()

  const payouts = new Map((await payoutsOf(ledger)).map((payout) => [payout.payoutId, payout]))
  assert.deepEqual(asked, [payouts.get('b')?.orderNo])
  assert.deepEqual(
    ['scheduled', 'leased', 'expired'].map((id) => payouts.get(id)?.state),
    ['queued', 'unknown', 'review'],
  )
  assert.ok(hanging < HANGING, `${hanging} queries of one merchant are under way`)
})
