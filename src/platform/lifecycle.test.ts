import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lifecycle, pause } from './lifecycle.ts'
import { silentLogger } from './log.ts'

test('what was added last is stopped first, once, and one that fails does not keep the others up', async () => {
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

test('a loop outlives a turn that fails', async () => {
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

test('stopping waits for the turn in hand and cuts the pause after it short', async () => {
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

test('a pause that is aborted ends and does not reject', async () => {
  const abort = new AbortController()
  const paused = pause(3_600_000, abort.signal)
  abort.abort()
  await paused
  await pause(3_600_000, abort.signal)
})
