import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT } from '../../test/ledger.ts'
import {
  accepted,
  brokenPayins,
  payinLedger,
  report,
  storedPayins,
  TABLE,
  timeout,
} from '../../test/payins.ts'
import type { PayinCreateAnswer, PayinQueryAnswer } from '../gateway/payin-answers.ts'
import { PositiveControl } from '../gateway/positive-control.ts'
import { systemClock } from '../platform/clock.ts'
import { silentLogger } from '../platform/log.ts'
import { sql } from '../platform/postgres.ts'
import { recoverPayin } from './collect.ts'
import { PayinPoller } from './poller.ts'

/** Drives the database's clock: everything that waits is due, and everything unknown has been for a minute. */
const laterOn = sql<object>`
  update payins set due_at = now(), unknown_since = unknown_since - interval '1 minute' where due_at is not null`
const expired = sql<object>`update payins set expires_at = now()`
const notFound: PayinQueryAnswer = { kind: 'not-found', exchange: {} }

async function poller(
  t: TestContext,
  query: (payinId: string) => Promise<PayinQueryAnswer>,
  answer?: (payinId: string) => PayinCreateAnswer,
) {
  const opened = await payinLedger(t, answer)
  const asked: string[] = []
  const poller = new PayinPoller({
    control: new PositiveControl(systemClock),
    ...opened.settlement,
    askers: new Map([
      [
        'acme',
        [
          {
            ...ACCOUNT,
            table: TABLE,
            query: (payinId) => {
              asked.push(payinId)
              return query(payinId)
            },
            timeoutMs: 1_000,
          },
        ],
      ],
    ]),
    log: silentLogger,
  })
  /** One round of everything that is due once time has passed. */
  const processAll = async () => {
    await opened.ledger.db.run(laterOn, {})
    await poller.turn()
    await poller.drain()
  }
  const states = async () =>
    (await opened.ledger.db.run(storedPayins, {})).map(({ state, reason }) => [state, reason])
  return { ...opened, processAll, states, asked }
}

test('what was not called back about is asked about until the gateway says that it is paid', async (t) => {
  const answers: PayinQueryAnswer[] = []
  const { ledger, create, processAll, states } = await poller(t, async () => answers.shift() ?? notFound)
  const payin = await create('order-7')
  answers.push({ kind: 'retry', code: 'TOO_FAST', exchange: {} })
  answers.push({ kind: 'known', report: report(payin, 'pending') })
  answers.push({ kind: 'known', report: report(payin, 'paid') })
  await processAll()
  await processAll()
  assert.deepEqual(await states(), [['open', null]])
  await processAll()
  assert.deepEqual(await states(), [['paid', null]])
  assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
})

test('what is paid is not asked about again', async (t) => {
  const { create, processAll, asked } = await poller(t, async () => ({
    kind: 'known',
    report: report(payin, 'paid'),
  }))
  const payin = await create('order-7')
  for (let i = 0; i < 3; i++) await processAll()
  assert.equal(asked.length, 1)
})

test('a process that died while it asked for a payin: unknown, asked about, and open again', async (t) => {
  const { collect, create, processAll, states } = await poller(t, async () => ({
    kind: 'known',
    report: { ...report(lost, 'pending'), payOrderId: 'PO1' },
  }))
  const collector = collect.collectors.get('acme')
  assert.ok(collector)
  collector.create = () => Promise.reject(new Error('the process is killed here'))
  await assert.rejects(create('order-7'))
  const lost = await create('order-7')
  assert.deepEqual([lost.state, lost.checkout], ['creating', null])
  await processAll()
  assert.deepEqual(await states(), [['unknown', 'lease-ended']])
  await processAll()
  assert.deepEqual(await states(), [['open', null]])
})

test('"not found" proves absence only where a payin that must exist is found', async (t) => {
  let known: string | undefined
  const { create, processAll, states } = await poller(
    t,
    async (payinId) => (payinId === known ? { kind: 'known', report: report(control, 'pending') } : notFound),
    (payinId) => (controlled ? timeout : accepted(payinId)),
  )
  let controlled = false
  const control = await create('control')
  controlled = true
  await create('lost')
  for (let i = 0; i < 4; i++) await processAll()
  assert.deepEqual(await states(), [
    ['open', null],
    ['unknown', 'timeout'],
  ])
  known = control.payinId
  await processAll()
  await processAll()
  assert.deepEqual(await states(), [
    ['open', null],
    ['failed', 'proved-absent'],
  ])
})

test('a payin that nobody paid expires, and a recovery has it asked about and paid after all', async (t) => {
  let status: 'pending' | 'paid' = 'pending'
  const { ledger, collect, create, processAll, states, asked } = await poller(t, async () => ({
    kind: 'known',
    report: report(payin, status),
  }))
  const payin = await create('order-7')
  await ledger.db.run(expired, {})
  for (let i = 0; i < 3; i++) await processAll()
  assert.deepEqual([await states(), asked.length], [[['expired', null]], 1])
  const recovered = await recoverPayin(payin, '632611200001', collect)
  assert.equal(recovered.kind, 'answered')
  status = 'paid'
  await processAll()
  assert.deepEqual(await states(), [['paid', null]])
})
