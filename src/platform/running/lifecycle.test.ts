import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { silentLogger } from '../log.ts'
import { eventually } from './eventually.fixture.ts'
import { Heartbeats } from './heartbeats.ts'
import { Lifecycle, pause } from './lifecycle.ts'

test('parts stop in reverse order, once, and one that fails does not keep the others running', async () => {
  const lifecycle = new Lifecycle(silentLogger)
  const stopped: string[] = []
  lifecycle.own('database', async () => void stopped.push('database'))
  lifecycle.own('broken', async () => {
    throw new Error('will not')
  })
  lifecycle.own('server', async () => void stopped.push('server'))
  await Promise.all([lifecycle.stop(), lifecycle.stop()])
  assert.deepEqual(stopped, ['server', 'database'])
  assert.equal(lifecycle.signal.aborted, true)
})

test('a loop survives a turn that fails', async () => {
  const lifecycle = new Lifecycle(silentLogger)
  const third = Promise.withResolvers<void>()
  let turns = 0
  lifecycle.loop('test', async () => {
    turns++
    if (turns === 1) throw new Error('database is down')
    if (turns === 3) third.resolve()
    return 0
  })
  await third.promise
  await lifecycle.stop()
})

test('stopping waits for the current turn and cuts the pause after it short', async () => {
  const lifecycle = new Lifecycle(silentLogger)
  const began = Promise.withResolvers<void>()
  let finished = false
  lifecycle.loop('test', async () => {
    began.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    finished = true
    return 3_600_000
  })
  await began.promise
  await lifecycle.stop()
  assert.equal(finished, true)
})

test('a loop that is woken takes its next turn at once, also if it was woken during a turn', async () => {
  const lifecycle = new Lifecycle(silentLogger)
  let turns = 0
  let during: (() => void) | undefined
  const wake = lifecycle.loop('test', async () => {
    turns++
    during?.()
    return 3_600_000
  })
  await eventually('the first turn', async () => turns === 1)
  wake()
  await eventually('the turn after it was woken', async () => turns === 2)
  during = () => {
    if (turns === 3) wake()
  }
  wake()
  await eventually('the turn after it was woken during one', async () => turns === 4)
  await lifecycle.stop()
  assert.equal(turns, 4)
})

test('a loop whose turn has failed waits, although it is woken', async () => {
  const lifecycle = new Lifecycle(silentLogger)
  let turns = 0
  const wake = lifecycle.loop('test', async () => {
    turns++
    throw new Error('database is down')
  })
  await eventually('the second turn', async () => turns === 2)
  for (let i = 0; i < 20; i++) {
    wake()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(turns, 2)
  await lifecycle.stop()
})

test('an aborted pause ends and does not reject', async () => {
  const abort = new AbortController()
  const paused = pause(3_600_000, abort.signal)
  abort.abort()
  await paused
  await pause(3_600_000, abort.signal)
})

test('a loop that keeps failing logs it once, and once more when it recovers', async () => {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line).msg) })
  const lifecycle = new Lifecycle(log)
  const over = Promise.withResolvers<void>()
  let turns = 0
  lifecycle.loop('test', async () => {
    if (++turns < 3) throw new Error('database is down')
    if (turns === 5) over.resolve()
    return 0
  })
  await over.promise
  await lifecycle.stop()
  assert.deepEqual(lines, ['loop failed, retrying until it succeeds', 'loop goes on again'])
})

test('a turn that does not end shows in the heartbeat, a pause between turns does not', async () => {
  const lifecycle = new Lifecycle(silentLogger)
  const hanging = Promise.withResolvers<number>()
  lifecycle.loop('hangs', () => hanging.promise)
  lifecycle.loop('rests', async () => 3_600_000)
  await pause(20, lifecycle.signal)
  const silences = lifecycle.heartbeats.silences()
  assert.ok((silences.get('hangs') ?? 0) > 10)
  assert.equal(silences.get('rests'), 0)
  hanging.resolve(0)
  await lifecycle.stop()
  assert.equal(lifecycle.heartbeats.silences().size, 0)
})

test('a part that rests is not silent, and a stopped part is not missed', () => {
  let now = 0
  const heartbeats = new Heartbeats(() => now)
  for (const name of ['works', 'rests', 'stopped']) heartbeats.sign(name)
  heartbeats.rest('rests')
  heartbeats.forget('stopped')
  now = 70_000
  assert.deepEqual(
    [...heartbeats.silences()],
    [
      ['works', 70_000],
      ['rests', 0],
    ],
  )
})

test('a part that gives signs of life but only fails is reported with its start, until it succeeds or is tried no more', () => {
  let now = 0
  const heartbeats = new Heartbeats(() => now)
  const fail = (at: number, ...names: string[]) => {
    now = at
    for (const name of names) heartbeats.fail(name)
  }
  fail(0, 'succeeds', 'moved away', 'fails')
  fail(50_000, 'succeeds', 'fails')
  heartbeats.succeed('succeeds')
  now = 70_000
  assert.deepEqual([...heartbeats.failures()], [['fails', 50_000]])
  // One try may take minutes.
  fail(200_000, 'fails')
  assert.deepEqual([...heartbeats.failures()], [['fails', 200_000]])
  fail(900_000, 'fails')
  assert.deepEqual([...heartbeats.failures()], [['fails', 0]])
})

test('a loop that throws fails, and succeeds with the next turn that ends', async () => {
  const lifecycle = new Lifecycle(silentLogger)
  let isAway = true
  lifecycle.loop('writes', async () => {
    if (isAway) throw new Error('read-only')
    return 5
  })
  const fails = (expected: boolean) =>
    eventually('it', async () => lifecycle.heartbeats.failures().has('writes') === expected)
  await fails(true)
  isAway = false
  await fails(false)
  await lifecycle.stop()
})

test('a part that never stops is abandoned and notified, and the parts after it still stop', async () => {
  const lifecycle = new Lifecycle(silentLogger, { stopWithinMs: 40 })
  const stopped: string[] = []
  lifecycle.own('database', async () => void stopped.push('database'))
  lifecycle.own('hanging', (overdue) => {
    overdue.addEventListener('abort', () => stopped.push('overdue'))
    return new Promise(() => undefined)
  })
  await lifecycle.stop()
  assert.deepEqual(stopped, ['overdue', 'database'])
  assert.deepEqual(lifecycle.unfinished, ['hanging'])
})
