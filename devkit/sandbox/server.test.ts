import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Sandbox, startSandbox } from './sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, payout, receiveCallbacks, sign, until } from './testing.ts'

const REQ_TIME = '20261121120000'

describe('the sandbox over HTTP', () => {
  let sandbox: Sandbox
  let merchant: ReturnType<typeof merchantOf>

  before(async () => {
    const merchants = [
      { mchId: MCH_ID, key: KEY },
      { mchId: 'M2000', key: 'another key' },
    ]
    sandbox = await startSandbox({ state: newStateFile(), merchants, settleMs: 0, balance: 1_000_000n })
    merchant = merchantOf(sandbox.url)
  })
  after(() => sandbox.stop())

  const refused: [field: string, value: string, retCode: string][] = [
    ['mchOrderNo', '', 'ORDER_NO_INVALID'],
    ['mchOrderNo', 'A'.repeat(31), 'ORDER_NO_INVALID'],
    ['amount', '', 'AMOUNT_INVALID'],
    ['amount', '0', 'AMOUNT_INVALID'],
    ['amount', '-100', 'AMOUNT_INVALID'],
    ['amount', '10050', 'AMOUNT_INVALID'],
    ['amount', '100.00', 'AMOUNT_INVALID'],
    ['amount', '0100', 'AMOUNT_INVALID'],
    ['amount', '1e4', 'AMOUNT_INVALID'],
    ['amount', '1000000000000000', 'AMOUNT_INVALID'],
    ['currency', '', 'CURRENCY_INVALID'],
    ['currency', 'USD', 'CURRENCY_INVALID'],
    ['phoneNumber', '5876543210', 'PHONE_INVALID'],
    ['phoneNumber', '987654321', 'PHONE_INVALID'],
    ['phoneNumber', '+919876543210', 'PHONE_INVALID'],
    ['payerEmail', 'a@b.in', 'EMAIL_INVALID'],
    ['payerEmail', 'asha.rao', 'EMAIL_INVALID'],
    ['payerEmail', 'asha@localhost', 'EMAIL_INVALID'],
    ['accountName', 'A', 'NAME_INVALID'],
    ['accountName', 'A'.repeat(49), 'NAME_INVALID'],
    ['accountNo', '', 'ACCOUNT_NO_INVALID'],
    ['accountNo', '1234', 'ACCOUNT_NO_INVALID'],
    ['accountNo', '1'.repeat(36), 'ACCOUNT_NO_INVALID'],
    ['accountNo', '5010-0123', 'ACCOUNT_NO_INVALID'],
    ['accountBankCode', '', 'BANK_CODE_INVALID'],
    ['accountBankCode', 'bank', 'BANK_CODE_INVALID'],
    ['notifyUrl', '', 'NOTIFY_URL_INVALID'],
    ['notifyUrl', 'ftp://example.test/n', 'NOTIFY_URL_INVALID'],
    ['notifyUrl', 'http://', 'NOTIFY_URL_INVALID'],
    ['extra', '', 'EXTRA_INVALID'],
    ['extra', 'HDFC0001234', 'EXTRA_INVALID'],
    ['extra', '["HDFC0001234"]', 'EXTRA_INVALID'],
    ['extra', '{"value":1}', 'EXTRA_INVALID'],
    ['extra', '{"value":"HDFC0001234","more":1}', 'EXTRA_INVALID'],
    ['extra', '{"value":"HDFC1001234"}', 'IFSC_INVALID'],
    ['extra', '{"value":"hdfc0001234"}', 'IFSC_INVALID'],
    ['extra', '{"value":"a@okaxis"}', 'VPA_INVALID'],
  ]
  for (const [field, value, retCode] of refused) {
    test(`apply with ${field} "${value.slice(0, 40)}" is refused as ${retCode} and moves no money`, async () => {
      const before = await merchant.balance()
      const { http, fields, signedWell } = await merchant.apply({ [field]: value })
      assert.equal(http, 200)
      assert.deepEqual(Object.keys(fields), ['retCode', 'retMsg', 'sign'])
      assert.equal(fields.retCode, retCode)
      assert.ok(String(fields.retMsg).startsWith(`${field}: `), String(fields.retMsg))
      assert.ok(signedWell)
      assert.deepEqual(await merchant.balance(), before)
      assert.deepEqual(await merchant.orders(), [])
    })
  }

  test('a payout is accepted, frozen, paid, called back and found again', async (t) => {
    const { notifyUrl, received, about } = await receiveCallbacks(t)
    const opening = await merchant.balance()
    const applied = await merchant.apply({
      mchOrderNo: 'P1',
      notifyUrl,
      phoneNumber: '9876543210',
      payerEmail: 'asha@example.test',
      extra: '{"value":"asha.rao@okaxis"}',
      remark: 'salary & thanks',
    })
    assert.equal(applied.http, 200)
    assert.ok(applied.signedWell)
    const { agentpayOrderId } = applied.fields
    assert.match(String(agentpayOrderId), /^AP\d{18}$/)
    assert.deepEqual(
      { ...applied.fields, sign: '' },
      { retCode: 'SUCCESS', retMsg: 'accepted', agentpayOrderId, fee: 500, extra: null, status: 1, sign: '' },
    )
    await until(
      'the callback is acknowledged',
      async () => (await merchant.query('P1')).fields.notifyStatus === 2,
    )

    const [callback] = about('P1')
    assert.equal(received.length, 1)
    assert.equal(callback?.method, 'POST')
    assert.equal(callback?.body, '')
    assert.ok(callback?.signedWell)
    const { channelPayNo } = callback.params
    assert.match(String(channelPayNo), /^\d{12}$/)
    const { sign: signature, ...params } = callback.params
    assert.match(String(signature), /^[0-9A-F]{32}$/)
    assert.deepEqual(params, {
      amount: '10000',
      mchOrderNo: 'P1',
      fee: '500',
      channelPayNo,
      agentpayOrderId,
      status: '2',
    })

    for (const path of ['/api/pay/orderquery', '/api/pay/query_order']) {
      for (const named of [{ mchOrderNo: 'P1' }, { agentpayOrderId: String(agentpayOrderId) }]) {
        const found = await merchant.post(path, { mchId: MCH_ID, reqTime: REQ_TIME, ...named })
        assert.ok(found.signedWell)
        assert.deepEqual(
          { ...found.fields, sign: '' },
          {
            retCode: 'SUCCESS',
            mchOrderNo: 'P1',
            agentpayOrderId,
            channelPayNo,
            amount: 10000,
            status: 2,
            fee: 500,
            errorMessage: '',
            notifyStatus: 2,
            sign: '',
          },
        )
      }
    }
    const available = Number(opening.availableAmount) - 10_500
    for (const path of ['/api/agentpay/query_balance', '/api/agentpay/query_order']) {
      const { fields } = await merchant.post(path, { mchId: MCH_ID, reqTime: REQ_TIME })
      assert.deepEqual(fields, {
        retCode: 'SUCCESS',
        retMsg: null,
        busNo: MCH_ID,
        amount: available,
        frozenAmount: 0,
        availableAmount: available,
        pendingAmount: 0,
        unsettledAmount: 0,
      })
    }
  })

  test('a second apply with the same mchOrderNo is refused, whatever else it contains', async () => {
    assert.equal((await merchant.apply({ mchOrderNo: 'D1' })).fields.retCode, 'SUCCESS')
    const [first, second] = await Promise.all([
      merchant.apply({ mchOrderNo: 'D1' }),
      merchant.apply({ mchOrderNo: 'D1', amount: '20000', accountNo: '1234567890' }),
    ])
    for (const { fields, signedWell } of [first, second]) {
      assert.equal(fields.retCode, 'DUPLICATE_ORDER')
      assert.ok(signedWell)
    }
    const [order] = (await merchant.orders()).filter(({ mchOrderNo }) => mchOrderNo === 'D1')
    assert.equal(order?.applyCalls, 3)
    assert.equal(order?.amount, '10000')
    await until('it is paid', async () => (await merchant.query('D1')).fields.status === 2)
    const paid = (await merchant.orders()).filter(({ mchOrderNo }) => mchOrderNo === 'D1')
    assert.deepEqual(
      paid.map(({ timesPaid }) => timesPaid),
      [1],
    )
  })

  test('two merchants may use the same mchOrderNo, and neither sees the order of the other', async () => {
    const { agentpayOrderId } = (await merchant.apply({ mchOrderNo: 'S1' })).fields
    const asked = { mchId: 'M2000', reqTime: REQ_TIME, agentpayOrderId: String(agentpayOrderId) }
    const query = new URLSearchParams({ ...asked, sign: sign(asked, 'another key') }).toString()
    assert.equal((await merchant.raw('/api/pay/query_order', query)).fields.retCode, 'ORDER_NOT_FOUND')
    const params = payout({ mchId: 'M2000', mchOrderNo: 'S1' })
    const apply = new URLSearchParams({ ...params, sign: sign(params, 'another key') }).toString()
    assert.equal((await merchant.raw('/api/agentpay/apply', apply)).fields.retCode, 'SUCCESS')
  })

  test('a payout that the available balance does not cover is refused as BALANCE_SHORT and may come again', async () => {
    const { availableAmount } = await merchant.balance()
    const amount = String(Number(availableAmount) - (Number(availableAmount) % 100))
    const { fields } = await merchant.apply({ mchOrderNo: 'B1', amount })
    assert.equal(fields.retCode, 'BALANCE_SHORT')
    assert.equal((await merchant.query('B1')).fields.retCode, 'ORDER_NOT_FOUND')
    assert.equal((await merchant.balance()).availableAmount, availableAmount)
    assert.equal((await merchant.apply({ mchOrderNo: 'B1' })).fields.retCode, 'SUCCESS')
  })

  test('queries that break a rule are refused, each with its own code', async () => {
    const cases: [path: string, params: Record<string, string>, retCode: string, field: string][] = [
      ['/api/pay/query_order', { reqTime: REQ_TIME }, 'PARAM_ERROR', 'mchOrderNo'],
      [
        '/api/pay/query_order',
        { reqTime: REQ_TIME, mchOrderNo: 'A'.repeat(31) },
        'ORDER_NO_INVALID',
        'mchOrderNo',
      ],
      [
        '/api/pay/query_order',
        { reqTime: REQ_TIME, agentpayOrderId: 'A'.repeat(31) },
        'ORDER_NO_INVALID',
        'agentpayOrderId',
      ],
      ['/api/pay/orderquery', { mchOrderNo: 'P1' }, 'REQ_TIME_INVALID', 'reqTime'],
      [
        '/api/pay/query_order',
        { mchOrderNo: 'P1', reqTime: '20260230120000' },
        'REQ_TIME_INVALID',
        'reqTime',
      ],
      ['/api/pay/query_order', { mchOrderNo: 'NONE', reqTime: REQ_TIME }, 'ORDER_NOT_FOUND', 'no order'],
      [
        '/api/pay/query_order',
        { mchOrderNo: 'P1', agentpayOrderId: 'AP202611210000000099', reqTime: REQ_TIME },
        'ORDER_NOT_FOUND',
        'no order',
      ],
    ]
    for (const [path, params, retCode, begins] of cases) {
      const { fields, signedWell } = await merchant.post(path, { mchId: MCH_ID, ...params })
      assert.equal(fields.retCode, retCode)
      assert.ok(String(fields.retMsg).startsWith(begins), String(fields.retMsg))
      assert.ok(signedWell)
    }
    const balance = await merchant.post('/api/agentpay/query_balance', { mchId: MCH_ID, reqTime: '2026' })
    assert.equal(balance.fields.retCode, 'REQ_TIME_INVALID')
    assert.ok(!('sign' in balance.fields))
  })

  test('a wrong signature is refused before any other check', async () => {
    for (const wrong of ['', 'A'.repeat(32), sign(payout({ amount: '1' }), 'not the key')]) {
      const body = new URLSearchParams({ ...payout({ amount: '1' }), sign: wrong }).toString()
      const { fields, signedWell } = await merchant.raw('/api/agentpay/apply', body)
      assert.equal(fields.retCode, 'SIGN_ERROR')
      assert.ok(signedWell)
    }
    const params = { ...payout({ mchOrderNo: 'X1' }), unlisted: 'counts too' }
    const body = new URLSearchParams({ ...params, sign: sign(payout({ mchOrderNo: 'X1' }), KEY) }).toString()
    assert.equal((await merchant.raw('/api/agentpay/apply', body)).fields.retCode, 'SIGN_ERROR')
  })

  test('a stranger gets an error with an empty signature', async () => {
    const { fields } = await merchant.apply({ mchId: 'M404' })
    assert.equal(fields.retCode, 'MERCHANT_NOT_FOUND')
    assert.equal(fields.sign, '')
  })

  test('a request that names no merchant gets the fault of its mchId', async () => {
    const params = payout()
    const { mchId: _, ...rest } = params
    const encoded = new URLSearchParams({ ...params, sign: sign(params, KEY) }).toString()
    const without = new URLSearchParams(rest).toString()
    const asked = async (body: string, type = 'application/x-www-form-urlencoded', query = '') => {
      const headers = { 'content-type': type }
      const url = `${sandbox.url}/api/agentpay/apply${query}`
      const response = await fetch(url, { method: 'POST', headers, body })
      const { retCode, retMsg, sign } = (await response.json()) as Record<string, string>
      assert.equal(sign, '')
      return `${response.status} ${retCode} ${retMsg}`
    }
    const looked = '200 PARAM_ERROR mchId: is required; the parameters were looked for in'
    assert.equal(await asked(without), `${looked} the body, as a form`)
    assert.equal(await asked(`${without}&mchId=`), `${looked} the body, as a form`)
    assert.equal(await asked(JSON.stringify(params)), `${looked} the body, as a form`)
    assert.equal(await asked('{}', 'application/json'), `${looked} the body, as JSON`)
    assert.equal(await asked('', undefined, `?${without}`), `${looked} the query string`)
    const twice = `${encoded}&mchId=M2`
    assert.equal(await asked(twice), '200 PARAM_ERROR mchId: was given more than once')
    assert.equal(
      await asked(encoded, 'text/plain'),
      '415 PARAM_ERROR the content-type must be application/x-www-form-urlencoded or application/json, as the dialect says',
    )
  })

  test('no readable answer to a balance query carries a sign, whoever asks and whatever is wrong', async () => {
    const asked = { mchId: MCH_ID, reqTime: REQ_TIME }
    const path = '/api/agentpay/query_balance'
    const refusals = [
      await merchant.post(path, { ...asked, reqTime: '2026' }),
      await merchant.post(path, { ...asked, mchId: 'M404' }),
      await merchant.post(path, { reqTime: REQ_TIME }),
      await merchant.raw(path, new URLSearchParams(asked).toString()),
      await merchant.raw(`${path}?${new URLSearchParams(asked)}`, ''),
    ]
    const codes = refusals.map(({ fields }) => fields.retCode)
    const [noTime, stranger, nobody, unsigned, elsewhere] = codes
    assert.deepEqual([noTime, stranger], ['REQ_TIME_INVALID', 'MERCHANT_NOT_FOUND'])
    assert.deepEqual([nobody, unsigned, elsewhere], ['PARAM_ERROR', 'SIGN_ERROR', 'PARAM_ERROR'])
    for (const { fields } of refusals) assert.deepEqual(Object.keys(fields), ['retCode', 'retMsg'])
  })

  test('a refusal names the limit of an amount, and both readings of an ambiguous query', async () => {
    const long = await merchant.apply({ amount: '1000000000000000' })
    assert.match(String(long.fields.retMsg), /^amount: .* at most 15 digits/)
    const either = await merchant.post('/api/pay/orderquery', { mchId: MCH_ID, mchOrderNo: 'P1' })
    assert.equal(either.fields.retCode, 'REQ_TIME_INVALID')
    assert.match(String(either.fields.retMsg), /^reqTime: .*executeNotify/)
  })

  test('a parameter given twice is refused by name', async () => {
    const params = payout({ mchOrderNo: 'R1' })
    const body = new URLSearchParams({ ...params, sign: sign(params, KEY) }).toString()
    const { fields, signedWell } = await merchant.raw('/api/agentpay/apply', `${body}&amount=99900`)
    assert.equal(fields.retCode, 'PARAM_ERROR')
    assert.ok(String(fields.retMsg).startsWith('amount: '))
    assert.ok(signedWell)
  })

  test('a body over 64 KB, or one that is not a form, is not read', async () => {
    const large = await merchant.raw('/api/agentpay/apply', `remark=${'x'.repeat(64 * 1024)}`)
    assert.equal(large.http, 413)
    assert.equal(large.fields.retCode, 'PARAM_ERROR')
    const json = await fetch(`${sandbox.url}/api/agentpay/apply`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(payout()),
    })
    assert.equal(json.status, 415)
    const empty = await fetch(`${sandbox.url}/api/agentpay/apply`, { method: 'POST' })
    assert.equal(((await empty.json()) as { retCode: string }).retCode, 'PARAM_ERROR')
  })

  test('the inspection routes show no account numbers, and no unknown merchants', async () => {
    await merchant.apply({ mchOrderNo: 'J1', accountNo: '50100987654321' })
    const [order] = (await merchant.orders()).filter(({ mchOrderNo }) => mchOrderNo === 'J1')
    assert.equal(order?.accountNoMasked, '••••4321')
    assert.equal((await fetch(`${sandbox.url}/_sandbox/books?mchId=M404`)).status, 404)
    assert.equal((await fetch(`${sandbox.url}/_sandbox/orders`)).status, 404)
    assert.equal((await fetch(`${sandbox.url}/healthz`)).status, 200)
  })
})
