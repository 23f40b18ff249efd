import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { createHttpServer } from '../platform/http.ts'
import { Metrics } from '../platform/metrics.ts'
import { Dependencies } from './dependencies.ts'
import { internalRoutes } from './internal-routes.ts'

/** A Kafka whose state the test sets, and what is logged about it. */
function watched() {
  const lines: { level: number; msg: string; awayMs?: number; reason?: string }[] = []
  let now = 0
  let kafka: () => Promise<unknown> = async () => undefined
  const dependencies = new Dependencies({
    checks: { Kafka: () => kafka() },
    words: (error) => `in words: ${error instanceof Error ? error.message : error}`,
    clock: { monotonic: () => now },
    log: pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) }),
  })
  return {
    dependencies,
    lines,
    async turnAt(at: number, is: () => Promise<unknown>) {
      now = at
      kafka = is
      await dependencies.turn()
    },
  }
}

const there = async () => undefined
const away = async () => {
  throw new Error('ECONNREFUSED')
}

test('the loss of a dependency is logged once, with its reason, and its return once, with how long it was away', async () => {
  const { dependencies, lines, turnAt } = watched()
  assert.deepEqual(dependencies.states(), { Kafka: 'was not checked yet' })
  await turnAt(0, there)
  await turnAt(1_000, away)
  await turnAt(2_000, away)
  assert.deepEqual(dependencies.states(), { Kafka: 'in words: ECONNREFUSED' })
  await turnAt(3_500, there)
  await turnAt(4_000, there)
  assert.deepEqual(dependencies.states(), { Kafka: 'ok' })
  assert.deepEqual(
    lines.map(({ level, msg, reason, awayMs }) => [level, msg, reason ?? awayMs]),
    [
      [50, 'Kafka does not answer: work that needs it waits until it is back', 'in words: ECONNREFUSED'],
      [30, 'Kafka is back', 2_500],
    ],
  )
})

test('a dependency that does not answer is reported as lost, and payoutd does not ask again until it answers', async () => {
  const { dependencies, turnAt } = watched()
  const frozen = Promise.withResolvers<void>()
  let asked = 0
  const ask = () => {
    asked++
    return frozen.promise
  }
  await turnAt(0, ask)
  assert.deepEqual(dependencies.states(), { Kafka: 'does not answer within 3 s' })
  const next = turnAt(1_000, ask)
  frozen.resolve()
  await next
  assert.deepEqual([asked, dependencies.states()], [1, { Kafka: 'ok' }])
})

test('/readyz is 503 with the reason until its roles have begun, while a dependency is away, and while a loop stands still or only fails', async (t) => {
  const server = createHttpServer()
  t.after(() => server.close())
  let kafka = 'ok'
  let relayMs = 0
  let failingMs = 0
  let isUp = false
  internalRoutes(server, new Metrics(), {
    dependencies: () => ({ Kafka: kafka }),
    silences: () => new Map([['relay', relayMs]]),
    failures: () => new Map([['dispatch', failingMs]]),
    isUp: () => isUp,
  })
  const ready = async () => {
    const { statusCode, body } = await server.inject('/readyz')
    return [statusCode, JSON.parse(body)]
  }
  assert.deepEqual(await ready(), [503, { roles: 'starting', Kafka: 'ok', loops: 'ok' }])
  isUp = true
  assert.deepEqual(await ready(), [200, { roles: 'ok', Kafka: 'ok', loops: 'ok' }])
  kafka = 'does not answer'
  assert.deepEqual(await ready(), [503, { roles: 'ok', Kafka: 'does not answer', loops: 'ok' }])
  kafka = 'ok'
  relayMs = 31_000
  assert.deepEqual(await ready(), [
    503,
    { roles: 'ok', Kafka: 'ok', loops: 'relay has not progressed for 31 s' },
  ])
  relayMs = 0
  failingMs = 31_000
  const failing = 'dispatch has only failed for 31 s'
  assert.deepEqual(await ready(), [503, { roles: 'ok', Kafka: 'ok', loops: failing }])
  relayMs = 31_000
  const metrics = (await server.inject('/metrics')).body
  assert.match(metrics, /payoutd_dependency_up\{dependency="Kafka"\} 1/)
  assert.match(metrics, /payoutd_loop_silence_seconds\{loop="relay"\} 31/)
  assert.match(metrics, /payoutd_loop_failing_seconds\{loop="dispatch"\} 31/)
})
