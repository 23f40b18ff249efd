import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startSandbox } from './sandbox.ts'
import { behaviourOf } from './test-accounts.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, receiveCallbacks, until } from './testing.ts'

const USUAL = '50100123456789'

/** A sandbox that settles and repeats callbacks at once, with a merchant and its callbacks. */
async function start(t: TestContext) {
  const sandbox = await startSandbox({
    state: newStateFile(),
    merchants: [{ mchId: MCH_ID, key: KEY }],
    settleMs: 0,
    callbackRetries: [0, 0, 0],
  })
  t.after(() => sandbox.stop())
  const merchant = merchantOf(sandbox.url)
  const callbacks = await receiveCallbacks(t)
  const { notifyUrl } = callbacks
  const pay = (mchOrderNo: string, accountNo: string, signal?: AbortSignal) =>
    merchant.apply({ mchOrderNo, accountNo, notifyUrl }, signal)
  const order = async (mchOrderNo: string) =>
    (await merchant.orders()).find((each) => each.mchOrderNo === mchOrderNo)
  const paidOnce = async (mchOrderNo: string) => {
    await until(`${mchOrderNo} is paid`, async () => (await order(mchOrderNo))?.status === 2)
    assert.equal((await order(mchOrderNo))?.timesPaid, 1)
    assert.equal((await merchant.books()).everything.sum, '0')
  }
  /** Every due callback has been sent and acknowledged. */
  const quiet = () =>
    until('no callback is outstanding', async () => {
      const { orders } = await merchant.books()
      return orders.processing === 0 && orders.callbacksOutstanding === 0
    })
  return { merchant, callbacks, pay, order, paidOnce, quiet }
}

/** An apply without an answer: the client gives up once `seen` holds. */
async function givenUp(apply: (signal: AbortSignal) => Promise<unknown>, seen: () => Promise<boolean>) {
  const abort = new AbortController()
  const failure = apply(abort.signal).then(
    () => assert.fail('an answer came'),
    (error: Error) => error,
  )
  await until('the sandbox has seen the request', seen)
  abort.abort()
  return await failure
}

test('a number that is not magic, or only looks like it, is paid as usual', () => {
  for (const accountNo of [USUAL, '99990000', '9999000000', '9999000099', '19999000001', '9999000A01']) {
    assert.deepEqual(behaviourOf(accountNo), behaviourOf('12345'))
  }
  assert.notDeepEqual(behaviourOf('99990000010001'), behaviourOf(USUAL))
})

test('01 fails with an error message, and amount and fee come back', async (t) => {
  const { merchant, pay, callbacks, quiet } = await start(t)
  const opening = await merchant.balance()
  assert.equal((await pay('F1', '9999000001')).fields.status, 1)
  await quiet()
  const { fields } = await merchant.query('F1')
  assert.equal(fields.status, 3)
  assert.equal(fields.channelPayNo, null)
  assert.ok(fields.errorMessage)
  const [callback] = callbacks.about('F1')
  assert.ok(callback?.signedWell)
  assert.equal(callback.params.status, '3')
  assert.equal(callback.params.channelPayNo, '')
  assert.equal(callback.params.errorMessage, fields.errorMessage)
  assert.deepEqual(await merchant.balance(), opening)
  const { accounts, movements } = await merchant.books()
  assert.equal(accounts.paidOut, '0')
  assert.equal(movements.release, 1)
})

test('02 is paid but never called back', async (t) => {
  const { pay, callbacks, paidOnce, order, quiet, merchant } = await start(t)
  await pay('N1', '9999000002')
  await paidOnce('N1')
  await pay('N2', USUAL)
  await quiet()
  assert.equal(callbacks.about('N2').length, 1)
  assert.equal(callbacks.about('N1').length, 0)
  assert.equal((await order('N1'))?.callbacksSent, 0)
  assert.equal((await merchant.query('N1')).fields.notifyStatus, 0)
})

test('03 is called back twice with the same content', async (t) => {
  const { pay, callbacks, paidOnce, order, quiet } = await start(t)
  await pay('T1', '9999000003')
  await paidOnce('T1')
  await quiet()
  const [first, second, ...more] = callbacks.about('T1')
  assert.deepEqual(second, first)
  assert.ok(first?.signedWell)
  assert.equal(more.length, 0)
  assert.equal((await order('T1'))?.callbacksAcknowledged, 2)
})

test('04 is called back before apply answers', async (t) => {
  const { pay, callbacks, paidOnce } = await start(t)
  const { fields } = await pay('E1', '9999000004')
  assert.equal(callbacks.about('E1')[0]?.params.status, '2')
  assert.equal(fields.retCode, 'SUCCESS')
  assert.equal(fields.status, 1)
  await paidOnce('E1')
})

test('05 is accepted and paid, but apply is never answered', async (t) => {
  const { pay, paidOnce, order, callbacks, quiet } = await start(t)
  await givenUp(
    (signal) => pay('H1', '9999000005', signal),
    async () => (await order('H1')) !== undefined,
  )
  await paidOnce('H1')
  await quiet()
  assert.equal(callbacks.about('H1').length, 1)
  assert.equal((await pay('H1', '9999000005')).fields.retCode, 'DUPLICATE_ORDER')
})

test('06 hangs once and accepts nothing, and the second apply is accepted', async (t) => {
  const { pay, paidOnce, order } = await start(t)
  const abort = new AbortController()
  const attempts = [1, 2].map(() => pay('H2', '9999000006', abort.signal))
  const answer = await Promise.race(attempts)
  assert.equal(answer.fields.retCode, 'SUCCESS')
  abort.abort()
  const ends = (await Promise.allSettled(attempts)).map(({ status }) => status)
  assert.deepEqual(ends.sort(), ['fulfilled', 'rejected'])
  await paidOnce('H2')
  assert.equal((await order('H2'))?.applyCalls, 2)
})

test('07 is an HTTP 500 once and accepts nothing, and the second apply is accepted', async (t) => {
  const { merchant, pay, paidOnce, order } = await start(t)
  assert.equal((await pay('S1', '9999000007')).http, 500)
  assert.equal((await merchant.query('S1')).fields.retCode, 'ORDER_NOT_FOUND')
  assert.equal((await pay('S2', '9999000007')).http, 500)
  assert.equal((await pay('S1', '9999000007')).fields.retCode, 'SUCCESS')
  await paidOnce('S1')
  assert.equal((await order('S1'))?.applyCalls, 2)
})

test('08 is accepted and paid, but apply answers HTTP 500', async (t) => {
  const { pay, paidOnce } = await start(t)
  assert.equal((await pay('S3', '9999000008')).http, 500)
  await paidOnce('S3')
})

test('09 is accepted and paid, but the answer has a wrong signature', async (t) => {
  const { pay, paidOnce } = await start(t)
  const { fields, signedWell } = await pay('W1', '9999000009')
  assert.equal(fields.retCode, 'SUCCESS')
  assert.match(String(fields.sign), /^[0-9A-F]{32}$/)
  assert.ok(!signedWell)
  await paidOnce('W1')
})

test('10 is accepted at once, but answered after later orders', async (t) => {
  const { pay, paidOnce } = await start(t)
  const answered: string[] = []
  const abort = new AbortController()
  const late = pay('L1', '999900001099', abort.signal).then(
    () => answered.push('L1'),
    () => undefined,
  )
  await paidOnce('L1')
  await pay('L2', USUAL)
  assert.deepEqual(answered, [])
  abort.abort()
  await late
  assert.equal((await pay('L3', '999900001001')).fields.retCode, 'SUCCESS')
})

test('11 is too fast for the first applies of each order number', async (t) => {
  const { merchant, pay, paidOnce, order } = await start(t)
  const retCode = async (mchOrderNo: string, accountNo: string) =>
    (await pay(mchOrderNo, accountNo)).fields.retCode
  assert.equal(await retCode('Q1', '9999000011'), 'TOO_FAST')
  assert.equal(await retCode('Q2', '999900001101'), 'TOO_FAST')
  assert.equal(await retCode('Q1', '9999000011'), 'TOO_FAST')
  assert.equal((await merchant.query('Q1')).fields.retCode, 'ORDER_NOT_FOUND')
  assert.equal(await retCode('Q2', '999900001101'), 'SUCCESS')
  assert.equal(await retCode('Q1', '9999000011'), 'SUCCESS')
  await paidOnce('Q1')
  assert.equal((await order('Q1'))?.applyCalls, 3)
})

test('12 is called back as success, then as failed with a good signature, and is paid in the books', async (t) => {
  const { merchant, pay, callbacks, paidOnce, quiet } = await start(t)
  await pay('C1', '9999000012')
  await paidOnce('C1')
  await quiet()
  const told = callbacks.about('C1')
  assert.deepEqual(
    told.map(({ params, signedWell }) => [params.status, signedWell]),
    [
      ['2', true],
      ['3', true],
    ],
  )
  assert.ok(told[1]?.params.errorMessage)
  assert.equal((await merchant.query('C1')).fields.status, 2)
})

test('13 is called back with a wrong signature first, then with a good one', async (t) => {
  const { pay, callbacks, paidOnce, quiet } = await start(t)
  await pay('G1', '9999000013')
  await paidOnce('G1')
  await quiet()
  assert.deepEqual(
    callbacks.about('G1').map(({ signedWell }) => signedWell),
    [false, true],
  )
})

test('14 is called back for another amount only', async (t) => {
  const { merchant, pay, callbacks, paidOnce, quiet } = await start(t)
  await pay('A1', '9999000014')
  await paidOnce('A1')
  await quiet()
  assert.deepEqual(
    callbacks.about('A1').map(({ params, signedWell }) => [params.amount, signedWell]),
    [['10100', true]],
  )
  assert.equal((await merchant.query('A1')).fields.amount, 10000)
})

test('15 is accepted and paid, but the connection is reset', async (t) => {
  const { pay, paidOnce } = await start(t)
  const failure = await pay('R1', '9999000015').then(
    () => assert.fail('an answer came'),
    (error: Error) => error,
  )
  assert.equal((failure.cause as NodeJS.ErrnoException).code, 'ECONNRESET')
  await paidOnce('R1')
})

test('16 is still processing when later orders are paid, and is paid in the end', async (t) => {
  const { merchant, pay, paidOnce } = await start(t)
  await pay('P1', '999900001699')
  await pay('P2', USUAL)
  await paidOnce('P2')
  assert.equal((await merchant.query('P1')).fields.status, 1)
  assert.equal((await merchant.balance()).frozenAmount, 10_500)
  await pay('P3', '999900001601')
  await paidOnce('P3')
})
