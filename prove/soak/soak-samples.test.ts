import assert from 'node:assert/strict'
import { test } from 'node:test'
import { growing, type Sample, trendsOf } from './soak-samples.ts'

/** An hour at a hundred payouts a second, a fault every ten seconds, and bursts towards the end. */
const hour = (at: (minute: number) => Partial<Sample>): Sample[] =>
  Array.from({ length: 60 }, (_, minute) => ({
    ...usedIn(minute, minute > 40 ? minute % 2 : 0),
    ...at(minute),
  }))

const usedIn = (minute: number, burst: number): Sample => ({
  atMs: minute * 60_000,
  payouts: minute * 6_000,
  troubles: minute * 6,
  processes: { steady: { rssMb: 200 + 900 * burst, handles: 40 + 600 * burst } },
  ...{ connections: 16, tablesMb: 10 * minute, liveRows: 0, deadRows: 0, lag: 0 },
  outbox: 5_000 * burst,
})

const grown = (at: (minute: number) => Partial<Sample>) =>
  growing(trendsOf(hour(at), ['steady'])).map((each) => each.replace(/ from .*/, ''))

test('a use that comes and goes does not count as growth', () => {
  assert.deepEqual(
    grown(() => ({})),
    [],
  )
})

test('a small leak per payout or fault counts as growth', () => {
  const leaking = (minute: number) => ({
    processes: { steady: { rssMb: 200 + 6 * minute, handles: 40 + 6 * minute } },
    connections: 1 + minute,
    outbox: 50 * minute,
  })
  assert.deepEqual(grown(leaking), [
    'grows: MB of steady',
    'grows: handles of steady',
    'grows: connections to Postgres',
    'grows: messages in the outbox',
  ])
})

test('a process that disappears for good is reported, too', () => {
  assert.deepEqual(
    grown((minute) => (minute < 40 ? {} : { processes: {} })),
    ['grows: MB of steady', 'grows: handles of steady'],
  )
})
