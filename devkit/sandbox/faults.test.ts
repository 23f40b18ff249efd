import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type SandboxOptions, startSandbox } from './sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, receiveCallbacks, until } from './testing.ts'

async function start(t: TestContext, options: Partial<SandboxOptions> = {}) {
  const merchants = [{ mchId: MCH_ID, key: KEY }]
  const sandbox = await startSandbox({ state: newStateFile(), merchants, settleMs: 0, ...options })
  t.after(() => sandbox.stop())
  const call = async (method: string, json?: unknown) => {
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const headers: Record<string, string> = json === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(`${sandbox.url}/_sandbox/faults`, { method, headers, ...body })
    const text = await response.text()
    return { status: response.status, said: text === '' ? undefined : JSON.parse(text) }
  }
  const fault = async (wanted: object) => assert.equal((await call('POST', wanted)).status, 201)
  return { call, fault, merchant: merchantOf(sandbox.url) }
}

test('a fault strikes the next calls to its operation, and no other', async (t) => {
  const { call, fault, merchant } = await start(t)
  await fault({ fault: '500', operation: 'queryPayout', next: 2 })
  assert.deepEqual([(await merchant.apply()).http, (await merchant.create()).http], [200, 200])
  assert.equal((await merchant.queryPayin('ORDER1')).http, 200)
  assert.equal((await merchant.query('ORDER1')).http, 500)
  const [active] = (await call('GET')).said
  assert.deepEqual(active, {
    fault: '500',
    operation: 'queryPayout',
    next: 1,
    seed: 1,
    done: true,
    struck: 1,
  })
  assert.equal((await merchant.query('ORDER1')).http, 500)
  assert.deepEqual((await call('GET')).said, [])
  assert.equal((await merchant.query('ORDER1')).http, 200)
  await fault({ fault: 'garbage', operation: 'queryPayout', percent: 100 })
  assert.equal((await call('DELETE')).status, 204)
  assert.equal((await merchant.query('ORDER1')).fields.retCode, 'SUCCESS')
})

test('the answer to a struck call, and whether its order is accepted anyway', async (t) => {
  const { call, fault, merchant } = await start(t)
  const isTaken = async (mchOrderNo: string) =>
    (await merchant.query(mchOrderNo)).fields.retCode === 'SUCCESS'
  const answers: [kind: string, answered: (answer: Awaited<ReturnType<typeof merchant.apply>>) => boolean][] =
    [
      ['500', ({ http, fields }) => http === 500 && fields.text === 'Internal Server Error'],
      ['garbage', ({ http, fields }) => http === 200 && String(fields.text).startsWith('<html>')],
      ['unsigned', ({ fields }) => fields.retCode === 'SUCCESS' && !('sign' in fields)],
      ['wrongly-signed', ({ fields, signedWell }) => fields.retCode === 'SUCCESS' && !signedWell],
    ]
  for (const [kind, answered] of answers) {
    await fault({ fault: kind, operation: 'apply', next: 1 })
    assert.ok(answered(await merchant.apply({ mchOrderNo: kind })), kind)
    assert.ok(await isTaken(kind), kind)
  }
  await fault({ fault: 'reset', operation: 'apply', next: 1 })
  await assert.rejects(merchant.apply({ mchOrderNo: 'reset' }))
  assert.ok(await isTaken('reset'))
  await fault({ fault: 'hang', operation: 'apply', next: 1, done: false })
  const patience = new AbortController()
  const hung = assert.rejects(merchant.apply({ mchOrderNo: 'hang' }, patience.signal))
  await until('the fault has struck', async () => (await call('GET')).said.length === 0)
  patience.abort()
  await hung
  assert.ok(!(await isTaken('hang')))
  await fault({ fault: '500', operation: 'apply', next: 1, done: false })
  assert.equal((await merchant.apply({ mchOrderNo: 'before' })).http, 500)
  assert.ok(!(await isTaken('before')))

  await fault({ fault: 'delay', operation: 'apply', next: 1, delayMs: 300 })
  const begun = performance.now()
  assert.equal((await merchant.apply({ mchOrderNo: 'late' })).fields.retCode, 'SUCCESS')
  assert.ok(performance.now() - begun >= 299)
})

test('a denied apply has made its order, and the signed answer says otherwise', async (t) => {
  const { fault, merchant } = await start(t)
  await fault({ fault: 'denied', operation: 'apply', next: 1, retCode: 'TOO_FAST' })
  const { fields, signedWell } = await merchant.apply({ mchOrderNo: 'ORDER1' })
  assert.deepEqual([fields.retCode, signedWell], ['TOO_FAST', true])
  assert.equal((await merchant.query('ORDER1')).fields.retCode, 'SUCCESS')
})

test('"not found" skips the orders listed as exceptions', async (t) => {
  const { fault, merchant } = await start(t)
  for (const mchOrderNo of ['ORDER1', 'ORDER2']) await merchant.apply({ mchOrderNo })
  await fault({ fault: 'not-found', operation: 'queryPayout', percent: 100, except: ['ORDER1'] })
  assert.equal((await merchant.query('ORDER1')).fields.retCode, 'SUCCESS')
  assert.equal((await merchant.query('ORDER2')).fields.retCode, 'ORDER_NOT_FOUND')
})

test('a share of the calls is struck, the same ones for the same seed', async (t) => {
  const { call, fault, merchant } = await start(t)
  const struck = async (seed: number) => {
    await call('DELETE')
    await fault({ fault: 'garbage', operation: 'queryBalance', percent: 30, seed })
    const calls: boolean[] = []
    for (let i = 0; i < 60; i++) calls.push('text' in (await merchant.balance()))
    return calls.map(Number).join('')
  }
  const first = await struck(7)
  assert.match(first, /0.*1|1.*0/)
  assert.equal(await struck(7), first)
  assert.notEqual(await struck(8), first)
})

test('callbacks are lost, doubled, garbled, contradicted and reordered when a fault says so', async (t) => {
  const { notifyUrl, about } = await receiveCallbacks(t)
  const { fault, merchant } = await start(t, { callbackRetries: [0] })
  /** The status and signature of each callback, in order of arrival. */
  const told = async (kind: string, count: number) => {
    await fault({ fault: kind, operation: 'payoutCallback', next: 1 })
    await merchant.apply({ mchOrderNo: kind, notifyUrl })
    await until(`${count} callbacks`, () => about(kind).length === count)
    await until('the callback is counted', async () => (await merchant.deliveries(kind)).length > 0)
    return about(kind).map(({ params, signedWell }) => `${params.status}${signedWell ? '' : ' forged'}`)
  }
  assert.deepEqual(await told('lost-callback', 1), ['2'])
  assert.deepEqual(
    (await merchant.deliveries('lost-callback')).map(({ error }) => error),
    ['lost by a fault', null],
  )
  assert.deepEqual(await told('duplicate-callback', 2), ['2', '2'])
  assert.deepEqual(await told('out-of-order-callback', 2), ['2', '1'])
  assert.deepEqual(await told('contradictory-callback', 2), ['2', '3'])
  assert.deepEqual(await told('wrongly-signed', 1), ['2 forged'])
  assert.deepEqual(await told('unsigned', 1), ['2 forged'])
  assert.ok(!('sign' in (about('unsigned')[0]?.params ?? {})))

  await fault({ fault: 'out-of-order-callback', operation: 'payinCallback', next: 1 })
  const { payOrderId } = (await merchant.create({ notifyUrl })).fields
  await merchant.press(String(payOrderId), 'pay')
  await until('both callbacks', () => about('PAYIN1').length === 2)
  assert.deepEqual(
    about('PAYIN1').map(({ params }) => [params.status, params.paySuccTime !== '']),
    [
      ['2', true],
      ['0', false],
    ],
  )
  assert.deepEqual((await merchant.books()).orders.paidMoreThanOnce, 0)
})

test('a callback that was not acknowledged is not contradicted', async (t) => {
  const { notifyUrl, about } = await receiveCallbacks(t, (_, nth) =>
    nth === 1 ? [500, 'later'] : [200, 'success'],
  )
  const { fault, merchant } = await start(t, { callbackRetries: [0] })
  await fault({ fault: 'contradictory-callback', operation: 'payoutCallback', percent: 100 })
  await merchant.apply({ mchOrderNo: 'PAYOUT1', notifyUrl })
  await until('three callbacks', () => about('PAYOUT1').length === 3)
  assert.deepEqual(
    about('PAYOUT1').map(({ params }) => params.status),
    ['2', '2', '3'],
  )
})

test('a contradictory query reports the other end of a payout, signed well, and the books stay', async (t) => {
  const { fault, merchant } = await start(t)
  const ends: [mchOrderNo: string, accountNo: string, end: number, told: number, message: string][] = [
    ['PAID', '501000001234', 2, 3, 'not so'],
    ['FAILED', '9999000001', 3, 2, ''],
    ['UNDER WAY', '999900001660', 1, 1, ''],
  ]
  for (const [mchOrderNo, accountNo, end, status, errorMessage] of ends) {
    await merchant.apply({ mchOrderNo, accountNo })
    const asked = async () => (await merchant.query(mchOrderNo)).fields.status
    await until('its end', async () => (await asked()) === end)
    await fault({ fault: 'contradictory', operation: 'queryPayout', next: 1 })
    const { fields, signedWell } = await merchant.query(mchOrderNo)
    assert.deepEqual([fields.status, fields.errorMessage, signedWell], [status, errorMessage, true])
    assert.equal(await asked(), end)
  }
  assert.equal((await merchant.books()).orders.timesPaid, 1)
})

test('if the clock is off, reported times are off too, and actions happen at that time', async (t) => {
  const HOUR_MS = 3_600_000
  const { notifyUrl, about } = await receiveCallbacks(t)
  const { fault, merchant } = await start(t, { settleMs: HOUR_MS, payinExpiryMs: HOUR_MS })
  const off = (operation: string, shiftMs: number) =>
    fault({ fault: 'clock-shift', operation, shiftMs, next: 1 })

  await off('createPayin', 5 * HOUR_MS)
  const created = await merchant.create({ notifyUrl })
  assert.ok(created.signedWell)
  await merchant.create({ mchOrderNo: 'IN TIME', notifyUrl })
  const [late, inTime] = await merchant.payins()
  const laterMs = Number(late?.expiresAt) - Number(inTime?.expiresAt)
  assert.ok(laterMs > 4 * HOUR_MS && laterMs <= 5 * HOUR_MS, `${laterMs}`)
  await off('createPayin', -HOUR_MS)
  await merchant.create({ mchOrderNo: 'TOO LATE', notifyUrl })
  await until('it expires', async () => (await merchant.queryPayin('TOO LATE')).fields.status === 3)

  await off('queryPayin', HOUR_MS)
  assert.equal((await merchant.queryPayin('PAYIN1')).fields.paySuccTime, null)
  await off('payinCallback', -HOUR_MS)
  const { paidAt } = await merchant.press(String(created.fields.payOrderId), 'pay')
  await until('it is called back about', () => about('PAYIN1').length === 1)
  const [told] = about('PAYIN1')
  assert.deepEqual([told?.params.paySuccTime, told?.signedWell], [String(Number(paidAt) - HOUR_MS), true])
  await off('queryPayin', HOUR_MS)
  const asked = await merchant.queryPayin('PAYIN1')
  assert.deepEqual([asked.fields.paySuccTime, asked.signedWell], [Number(paidAt) + HOUR_MS, true])
  assert.equal((await merchant.queryPayin('PAYIN1')).fields.paySuccTime, paidAt)

  await off('apply', -HOUR_MS)
  await merchant.apply()
  await until('it is paid', async () => (await merchant.query('ORDER1')).fields.status === 2)

  const lost = String((await merchant.create({ mchOrderNo: 'LOST', notifyUrl })).fields.payOrderId)
  const { untoldUtrs } = await merchant.press(lost, 'pay-untold')
  await off('recoverPayin', -HOUR_MS)
  const before = Date.now()
  await merchant.recover(lost, String(untoldUtrs[0]))
  const recoveredAt = Number((await merchant.queryPayin('LOST')).fields.paySuccTime)
  assert.ok(recoveredAt >= before - HOUR_MS && recoveredAt < before, `${recoveredAt}`)
})

test('an invalid fault is refused with every reason', async (t) => {
  const { call } = await start(t)
  const wrong: [json: object, named: RegExp][] = [
    [{ fault: 'fire', operation: 'apply', next: 1 }, /fault: /],
    [{ fault: 'hang', operation: 'payoutCallback', next: 1 }, /operation: /],
    [{ fault: 'lost-callback', operation: 'apply', next: 1 }, /operation: /],
    [{ fault: 'hang', operation: 'apply' }, /exactly one of next and percent/],
    [{ fault: 'hang', operation: 'apply', next: 1, percent: 1 }, /exactly one of next and percent/],
    [{ fault: 'clock-shift', operation: 'apply', next: 1 }, /shiftMs: /],
    [{ fault: 'clock-shift', operation: 'apply', next: 1, shiftMs: 0.5 }, /shiftMs: /],
    [{ fault: 'clock-shift', operation: 'apply', next: 1, shiftMs: -86_400_001 }, /shiftMs: /],
    [{ fault: 'delay', operation: 'apply', next: 0, delayMs: -1 }, /next: .*delayMs: |delayMs: .*next: /],
  ]
  for (const [json, named] of wrong) {
    const { status, said } = await call('POST', json)
    assert.equal(status, 400, JSON.stringify(json))
    assert.match(said.error, named)
  }
  assert.deepEqual((await call('GET')).said, [])
})

test('a fault of one merchant strikes no other merchant', async (t) => {
  const { fault, merchant } = await start(t)
  await fault({ fault: '500', operation: 'apply', percent: 100, mchId: 'M2000' })
  assert.equal((await merchant.apply()).http, 200)
  await fault({ fault: '500', operation: 'apply', percent: 100, mchId: MCH_ID })
  assert.equal((await merchant.apply()).http, 500)
})
