import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { systemClock } from '../../src/platform/running/clock.ts'
import { DrivenClock } from './driven-clock.ts'
import { Scheduler } from './scheduler.ts'

test('everything comes when it is due, once, the earliest first', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const clock = new DrivenClock(systemClock)
  fc.assert(
    fc.property(fc.array(fc.record({ wait: fc.nat(500), at: fc.nat(500) }), { maxLength: 60 }), (plan) => {
      const start = clock.now()
      const done: { at: number; now: number }[] = []
      const scheduler = new Scheduler<number>(clock, (due) => {
        for (const at of due) done.push({ at, now: clock.now() })
      })
      for (const { wait, at } of plan) {
        scheduler.add(start + at, start + at)
        t.mock.timers.tick(wait % 7)
      }
      t.mock.timers.tick(1000)
      assert.equal(done.length, plan.length)
      for (const { at, now } of done) assert.ok(now >= at)
      assert.deepEqual(
        done.map(({ at }) => at).sort((a, b) => a - b),
        plan.map(({ at }) => start + at).sort((a, b) => a - b),
      )
      for (const [i, { now, at }] of done.entries()) {
        const next = done[i + 1]
        if (next && next.now === now) assert.ok(at <= next.at)
      }
      scheduler.stop()
    }),
  )
})

test('a stopped scheduler does nothing more', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const clock = new DrivenClock(systemClock)
  const scheduler = new Scheduler<string>(clock, () => assert.fail('it ran'))
  scheduler.add(clock.now() + 10, 'before')
  scheduler.stop()
  scheduler.add(clock.now() + 10, 'after')
  t.mock.timers.tick(1000)
  clock.advance(1000)
})
