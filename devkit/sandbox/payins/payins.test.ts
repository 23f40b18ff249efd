import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { type SandboxOptions, startSandbox } from '../sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, press, receiveCallbacks, until } from '../testing.ts'

const MERCHANTS = [{ mchId: MCH_ID, key: KEY }]

async function start(t: TestContext, options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSandbox({ state: newStateFile(), merchants: MERCHANTS, settleMs: 0, ...options })
  t.after(() => sandbox.stop())
  return { sandbox, ...merchantOf(sandbox.url) }
}

const later = (ms: number) => ({ ...systemClock, now: () => systemClock.now() + ms })

const refused: [field: string, value: string, retCode: string][] = [
  ['mchOrderNo', '', 'ORDER_NO_INVALID'],
  ['mchOrderNo', 'A'.repeat(31), 'ORDER_NO_INVALID'],
  ['amount', '', 'AMOUNT_INVALID'],
  ['amount', '0', 'AMOUNT_INVALID'],
  ['amount', '-100', 'AMOUNT_INVALID'],
  ['amount', '10050', 'AMOUNT_INVALID'],
  ['amount', '10000.0', 'AMOUNT_INVALID'],
  ['amount', '1e4', 'AMOUNT_INVALID'],
  ['currency', '', 'CURRENCY_INVALID'],
  ['currency', 'inr', 'CURRENCY_INVALID'],
  ['phoneNumber', '5876543210', 'PHONE_INVALID'],
  ['payerEmail', 'a@b.in', 'EMAIL_INVALID'],
  ['accountName', 'A', 'NAME_INVALID'],
  ['accountName', 'A'.repeat(49), 'NAME_INVALID'],
  ['notifyUrl', '', 'NOTIFY_URL_INVALID'],
  ['notifyUrl', 'ftp://example.test/n', 'NOTIFY_URL_INVALID'],
  ['returnUrl', 'javascript:alert(1)', 'RETURN_URL_INVALID'],
]
test('a payin that breaks a rule is refused with the code of the rule and the name of the field', async (t) => {
  const { create, balance, books, payins } = await start(t)
  const before = await balance()
  const { everything } = await books()
  for (const [field, value, retCode] of refused) {
    const { http, fields, signedWell } = await create({ [field]: value })
    assert.equal(http, 200)
    assert.deepEqual(Object.keys(fields), ['retCode', 'retMsg', 'sign'])
    assert.equal(fields.retCode, retCode, `${field} ${value}`)
    assert.ok(String(fields.retMsg).startsWith(`${field}: `), String(fields.retMsg))
    assert.ok(signedWell)
  }
  assert.deepEqual(await payins(), [])
  assert.deepEqual(await balance(), before)
  assert.deepEqual((await books()).everything, everything)
})

test('a payin is created, paid, called back, found again, and its money becomes available', async (t) => {
  const { notifyUrl, received } = await receiveCallbacks(t)
  const state = newStateFile()
  const settings = { state, balance: 0n, payinSettleMs: 3_600_000, payinFeeFlat: 200n, payinFeeBps: 100n }
  const { sandbox, create, queryPayin, press, balance, books, post } = await start(t, settings)
  const created = await create({
    notifyUrl,
    amount: '1234500',
    phoneNumber: '9876543210',
    payerEmail: 'asha@example.test',
    accountName: 'Asha Rao',
    remark: 'fees & more',
    returnUrl: 'https://shop.test/done?a=1&b=2',
  })
  assert.ok(created.signedWell)
  const payOrderId = String(created.fields.payOrderId)
  assert.match(payOrderId, /^PI\d{18}$/)
  const upi = `${payOrderId.toLowerCase()}@sandbox`
  const link = `upi://pay?pa=${upi}&pn=Merchant%20${MCH_ID}&tr=${payOrderId}&am=12345.00&cu=INR`
  assert.deepEqual(
    { ...created.fields, sign: '' },
    {
      retCode: 'SUCCESS',
      retMsg: 'created',
      payOrderId,
      payParams: {
        payMethod: 'urlJump',
        payUrl: `${sandbox.url}/checkout/${payOrderId}`,
        qrString: link,
        upi,
        url: link,
      },
      sign: '',
    },
  )
  const waiting = await queryPayin('PAYIN1')
  assert.ok(waiting.signedWell)
  assert.deepEqual(
    { ...waiting.fields, sign: '' },
    {
      retCode: 'SUCCESS',
      retMsg: null,
      status: 0,
      productId: 'UPI',
      amount: 1234500,
      channelPayNo: null,
      currency: 'INR',
      mchOrderNo: 'PAYIN1',
      payOrderId,
      voucherMap: {},
      errorMessage: '',
      paySuccTime: null,
      notifyStatus: 0,
      sign: '',
    },
  )

  const { utr, paidAt } = await press(payOrderId, 'pay')
  assert.match(String(utr), /^\d{12}$/)
  await until('it is acknowledged', async () => (await queryPayin('PAYIN1')).fields.notifyStatus === 2)
  for (const named of [{ payOrderId }, { mchOrderNo: 'PAYIN1' }, { payOrderId, mchOrderNo: 'PAYIN1' }]) {
    const asked = { mchId: MCH_ID, executeNotify: 'false', ...named }
    const { fields, signedWell } = await post('/api/pay/orderquery', asked)
    assert.ok(signedWell)
    assert.deepEqual(
      { ...fields, sign: '' },
      {
        ...waiting.fields,
        status: 2,
        channelPayNo: utr,
        voucherMap: { payerVpa: 'payer@sandbox', utr },
        paySuccTime: paidAt,
        notifyStatus: 2,
        sign: '',
      },
    )
  }

  const [callback] = received
  assert.equal(received.length, 1)
  assert.equal(callback?.method, 'POST')
  assert.equal(callback.body, '')
  assert.ok(callback.signedWell)
  assert.deepEqual(
    { ...callback.params, sign: '' },
    {
      payOrderId,
      paySuccTime: String(paidAt),
      amount: '1234500',
      mchId: MCH_ID,
      mchOrderNo: 'PAYIN1',
      channelPayNo: utr,
      backType: '1',
      channelCode: 'UPI',
      status: '2',
      sign: '',
    },
  )

  // 1 % and 2 rupees.
  const net = 1234500 - 12345 - 200
  const held = { frozenAmount: 0, pendingAmount: 0 }
  const { retCode, retMsg, busNo, ...before } = await balance()
  assert.deepEqual(before, { amount: net, ...held, availableAmount: 0, unsettledAmount: net })
  assert.deepEqual((await books()).movements, { collect: 1 })
  await sandbox.stop()

  const after = await start(t, { ...settings, clock: later(3_600_000) })
  await until('it is settled', async () => (await after.balance()).unsettledAmount === 0)
  assert.deepEqual(
    { ...(await after.balance()) },
    { retCode, retMsg, busNo, amount: net, ...held, availableAmount: net, unsettledAmount: 0 },
  )
  const { accounts, movements, balancesAgree, everything } = await after.books()
  assert.equal(accounts.fees, '12545')
  assert.deepEqual(movements, { collect: 1, settle: 1 })
  assert.ok(balancesAgree)
  assert.equal(everything.sum, '0')
})

test('a second payin with the same mchOrderNo is refused, but a payout may have it', async (t) => {
  const { create, apply, payins } = await start(t)
  assert.equal((await create()).fields.retCode, 'SUCCESS')
  const again = await create({ amount: '20000' })
  assert.equal(again.fields.retCode, 'DUPLICATE_ORDER')
  assert.ok(String(again.fields.retMsg).startsWith('mchOrderNo: '))
  assert.equal((await apply({ mchOrderNo: 'PAYIN1' })).fields.retCode, 'SUCCESS')
  assert.deepEqual(
    (await payins()).map(({ amount }) => amount),
    ['10000'],
  )
})

test('a payin query that breaks a rule is refused, each with its own code', async (t) => {
  const { create, apply, post } = await start(t)
  const { payOrderId } = (await create()).fields
  await create({ mchOrderNo: 'OTHER' })
  const taken = await apply({ mchOrderNo: 'PAYIN1' })
  const cases: [path: string, params: Record<string, string>, retCode: string, begins: string][] = [
    ['orderquery', { executeNotify: 'true' }, 'PARAM_ERROR', 'mchOrderNo or payOrderId'],
    ['orderquery', { payOrderId: String(payOrderId) }, 'EXECUTE_NOTIFY_INVALID', 'executeNotify'],
    ['orderquery', { mchOrderNo: 'PAYIN1', executeNotify: '1' }, 'EXECUTE_NOTIFY_INVALID', 'executeNotify'],
    [
      'orderquery',
      { mchOrderNo: 'A'.repeat(31), executeNotify: 'true' },
      'ORDER_NO_INVALID',
      'mchOrderNo: must be at most 30 characters',
    ],
    ['orderquery', { payOrderId: 'A'.repeat(31) }, 'ORDER_NO_INVALID', 'payOrderId'],
    ['orderquery', { mchOrderNo: 'NONE', executeNotify: 'true' }, 'ORDER_NOT_FOUND', 'no order'],
    [
      'orderquery',
      { payOrderId: String(taken.fields.agentpayOrderId), executeNotify: 'true' },
      'ORDER_NOT_FOUND',
      'no order',
    ],
    [
      'orderquery',
      { mchOrderNo: 'OTHER', payOrderId: String(payOrderId), executeNotify: 'false' },
      'ORDER_NOT_FOUND',
      'no order',
    ],
    // The payout query's other path does not know payins.
    ['query_order', { mchOrderNo: 'PAYIN1', executeNotify: 'true' }, 'REQ_TIME_INVALID', 'reqTime'],
    ['replace', { channelPayNo: '611210000001' }, 'ORDER_NO_INVALID', 'payOrderId: is required'],
    ['replace', { payOrderId: String(payOrderId) }, 'UTR_INVALID', 'channelPayNo: is required'],
    [
      'replace',
      { payOrderId: String(payOrderId), channelPayNo: '1'.repeat(31) },
      'UTR_INVALID',
      'channelPayNo',
    ],
    ['replace', { payOrderId: 'PI000', channelPayNo: '611210000001' }, 'ORDER_NOT_FOUND', 'no order'],
  ]
  for (const [path, params, retCode, begins] of cases) {
    const { fields, signedWell } = await post(`/api/pay/${path}`, { mchId: MCH_ID, ...params })
    assert.equal(fields.retCode, retCode, JSON.stringify(params))
    assert.ok(String(fields.retMsg).startsWith(begins), String(fields.retMsg))
    assert.ok(signedWell)
  }
})

test('the query path shared by payins and payouts separates them by their fields', async (t) => {
  const { create, apply, post } = await start(t)
  await create({ mchOrderNo: 'BOTH' })
  await apply({ mchOrderNo: 'BOTH' })
  const asked = { mchId: MCH_ID, mchOrderNo: 'BOTH' }
  const payin = await post('/api/pay/orderquery', { ...asked, executeNotify: 'false' })
  assert.ok('payOrderId' in payin.fields)
  for (const more of [{}, { executeNotify: 'false' }]) {
    const payout = await post('/api/pay/orderquery', { ...asked, reqTime: '20261121120000', ...more })
    assert.ok('agentpayOrderId' in payout.fields)
  }
})

test('a payin that is not paid in time fails, is called back as failed, and can no longer be paid', async (t) => {
  const { notifyUrl, about } = await receiveCallbacks(t)
  const state = newStateFile()
  const first = await start(t, { state, payinExpiryMs: 900_000 })
  const { payOrderId } = (await first.create({ notifyUrl })).fields
  await first.sandbox.stop()

  const { queryPayin, books, sandbox } = await start(t, { state, clock: later(900_000) })
  await until('it is acknowledged', async () => (await queryPayin('PAYIN1')).fields.notifyStatus === 2)
  const { fields } = await queryPayin('PAYIN1')
  assert.equal(fields.status, 3)
  assert.equal(fields.paySuccTime, null)
  const [callback] = about('PAYIN1')
  assert.ok(callback?.signedWell)
  assert.equal(callback.params.status, '3')
  assert.equal(callback.params.errorMessage, fields.errorMessage)
  assert.equal(callback.params.paySuccTime, '')
  assert.equal((await press(sandbox.url, String(payOrderId), 'pay')).status, 409)
  assert.deepEqual((await books()).movements, { fund: 1 })
})

test('an unreported payment is pending, and is found by its UTR, once', async (t) => {
  const { notifyUrl, about } = await receiveCallbacks(t)
  const { create, press, recover, queryPayin, balance, books } = await start(t, {
    balance: 0n,
    payinSettleMs: 3_600_000,
  })
  const payOrderId = String((await create({ notifyUrl })).fields.payOrderId)
  const other = String((await create({ mchOrderNo: 'PAYIN2' })).fields.payOrderId)
  const larger = String((await create({ mchOrderNo: 'PAYIN3', amount: '20000' })).fields.payOrderId)
  const { status, untoldUtrs } = await press(payOrderId, 'pay-untold')
  assert.equal(status, 0)
  const [utr = ''] = untoldUtrs
  assert.match(utr, /^\d{12}$/)
  const held = await balance()
  assert.deepEqual([held.pendingAmount, held.unsettledAmount, held.amount], [10_000, 0, 10_000])
  assert.equal((await press(payOrderId, 'expire')).status, 3)

  const refusals: [payOrderId: string, utr: string, retCode: string][] = [
    [payOrderId, '999999999999', 'UTR_NOT_FOUND'],
    [larger, utr, 'AMOUNT_MISMATCH'],
  ]
  for (const [order, utr, retCode] of refusals) {
    assert.equal((await recover(order, utr)).fields.retCode, retCode)
  }
  const recovered = await recover(payOrderId, utr)
  assert.ok(recovered.signedWell)
  const said = {
    retCode: 'SUCCESS',
    retMsg: 'submitted',
    mchOrderNo: 'PAYIN1',
    agentpayOrderId: payOrderId,
    errorMessage: null,
    extra: null,
    sign: '',
  }
  assert.deepEqual({ ...recovered.fields, sign: '' }, said)
  await until('it is called back as paid', async () => (await queryPayin('PAYIN1')).fields.notifyStatus === 2)
  const { fields } = await queryPayin('PAYIN1')
  assert.deepEqual([fields.status, fields.channelPayNo, fields.errorMessage], [2, utr, ''])
  assert.deepEqual(about('PAYIN1').at(-1)?.params.status, '2')

  assert.equal((await recover(other, utr)).fields.retCode, 'UTR_USED')
  assert.deepEqual({ ...(await recover(payOrderId, utr)).fields, sign: '' }, said)
  const { untoldUtrs: second } = await press(other, 'pay-untold')
  assert.equal((await recover(payOrderId, second[0] ?? '')).fields.retCode, 'ORDER_PAID')
  const { movements, everything, balancesAgree } = await books()
  assert.deepEqual(movements, { arrive: 2, match: 1 })
  assert.equal(everything.sum, '0')
  assert.ok(balancesAgree)
  const matched = await balance()
  assert.deepEqual([matched.pendingAmount, matched.unsettledAmount], [10_000, 9_900])
})

test('no merchant recovers an order with the payment of another, or sees its callbacks', async (t) => {
  const merchants = [...MERCHANTS, { mchId: 'M2000', key: 'another key' }]
  const { sandbox, create, press, recover, deliveries } = await start(t, { merchants })
  const stranger = merchantOf(sandbox.url, 'another key')
  const theirs = String((await stranger.create({ mchId: 'M2000' })).fields.payOrderId)
  const { untoldUtrs } = await press(theirs, 'pay-untold')
  const ours = String((await create()).fields.payOrderId)
  assert.equal((await recover(ours, untoldUtrs[0] ?? '')).fields.retCode, 'UTR_NOT_FOUND')
  assert.equal((await recover(theirs, '1')).fields.retCode, 'ORDER_NOT_FOUND')
  await press(theirs, 'fail')
  const told = `${sandbox.url}/_sandbox/deliveries?mchId=M2000&order=${theirs}`
  await until('it was tried', async () => ((await (await fetch(told)).json()) as object[]).length === 1)
  assert.deepEqual(await deliveries(theirs), [])
})

test('a callback is repeated until it is acknowledged, and every try is recorded', async (t) => {
  const answers: [number, string][] = [
    [401, `bad signature ${'x'.repeat(200)}`],
    [200, 'ख़राब'],
  ]
  const { notifyUrl, received } = await receiveCallbacks(t, (_, nth) => answers[nth - 1] ?? [200, 'success'])
  const { create, press, queryPayin, deliveries } = await start(t, { callbackRetries: [0, 0, 0, 0, 0] })
  const payOrderId = String((await create({ notifyUrl })).fields.payOrderId)
  const before = Date.now()
  await press(payOrderId, 'fail')
  await until('it is acknowledged', async () => (await queryPayin('PAYIN1')).fields.notifyStatus === 2)
  assert.equal(received.length, 3)
  for (const number of ['PAYIN1', payOrderId]) {
    const kept = await deliveries(number)
    assert.deepEqual(
      kept.map(({ at, durationMs, ...rest }) => rest),
      [
        [401, `bad signature ${'x'.repeat(86)}`],
        [200, 'ख़राब'],
        [200, 'success'],
      ].map(([httpStatus, answer], i) => ({
        mchOrderNo: 'PAYIN1',
        orderId: payOrderId,
        attempt: i + 1,
        httpStatus,
        answer,
        error: null,
      })),
    )
    for (const { at, durationMs } of kept) {
      assert.ok(at >= before && at <= Date.now())
      assert.ok(Number.isInteger(durationMs) && durationMs >= 0)
    }
  }
})

test('an undeliverable callback is recorded with the reason', async (t) => {
  const { create, press, deliveries, apply } = await start(t, { callbackRetries: [] })
  await press(String((await create()).fields.payOrderId), 'pay')
  await apply({ mchOrderNo: 'PAYOUT1' })
  for (const number of ['PAYIN1', 'PAYOUT1']) {
    await until('it was tried', async () => (await deliveries(number)).length === 1)
    const [{ httpStatus, answer, error } = {}] = await deliveries(number)
    assert.deepEqual([httpStatus, answer], [null, ''])
    assert.ok(error)
  }
})

test('executeNotify sends one more callback, at once and without repeats', async (t) => {
  let answer: [number, string] = [503, 'come again']
  const { notifyUrl, received } = await receiveCallbacks(t, () => answer)
  const { create, press, queryPayin, deliveries } = await start(t, { callbackRetries: [] })
  const tried = (n: number) => until(`try ${n}`, async () => (await deliveries('PAYIN1')).length === n)
  const payOrderId = String((await create({ notifyUrl })).fields.payOrderId)
  await queryPayin('PAYIN1', 'true')
  await press(payOrderId, 'pay')
  await tried(1)
  assert.equal((await queryPayin('PAYIN1', 'true')).fields.notifyStatus, 1)
  await tried(2)
  answer = [200, 'success']
  await queryPayin('PAYIN1', 'true')
  await tried(3)
  assert.equal((await queryPayin('PAYIN1')).fields.notifyStatus, 2)
  assert.deepEqual(
    received.map(({ params, signedWell }) => [params.backType, params.status, signedWell]),
    [
      ['1', '2', true],
      ['2', '2', true],
      ['2', '2', true],
    ],
  )
})

test('the schedule of a payin callback survives a restart', async (t) => {
  const state = newStateFile()
  let answer: [number, string] = [503, 'come again']
  const { notifyUrl, about } = await receiveCallbacks(t, () => answer)
  const first = await start(t, { state })
  const payOrderId = String((await first.create({ notifyUrl })).fields.payOrderId)
  await first.press(payOrderId, 'pay')
  await until('it was refused', async () => (await first.payins())[0]?.callbacksSent === 1)
  await first.sandbox.stop()

  answer = [200, 'success']
  const early = await start(t, { state, clock: later(55_000) })
  const next = String((await early.create({ notifyUrl, mchOrderNo: 'PAYIN2' })).fields.payOrderId)
  await early.press(next, 'pay')
  await until('another is called back about', () => about('PAYIN2').length === 1)
  await early.sandbox.stop()
  assert.equal(about('PAYIN1').length, 1)

  const due = await start(t, { state, clock: later(60_000) })
  await until('it is acknowledged', async () => (await due.payins())[0]?.notifyStatus === 2)
  assert.equal(about('PAYIN1').length, 2)
  assert.deepEqual(
    (await due.deliveries('PAYIN1')).map(({ attempt, httpStatus }) => [attempt, httpStatus]),
    [
      [1, 503],
      [2, 200],
    ],
  )
})
