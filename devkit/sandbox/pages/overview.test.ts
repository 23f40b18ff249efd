import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type SandboxOptions, startSandbox } from '../sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, payout, receiveCallbacks, sign, until } from '../testing.ts'
import { STANDARD } from '../wire/dialect.ts'
import { Exchanges, type RecordedCall } from '../wire/exchanges.ts'

async function start(t: TestContext, options: Partial<SandboxOptions> = {}) {
  const merchants = [{ mchId: MCH_ID, key: KEY, olderKeys: ['an older key'] }]
  const sandbox = await startSandbox({ state: newStateFile(), merchants, settleMs: 0, ...options })
  t.after(() => sandbox.stop())
  const page = async (query = '') => await (await fetch(`${sandbox.url}/${query}`)).text()
  /** The explanation of the latest exchange of this kind, as text. */
  const explained = async (what: string) => {
    const [, number] =
      new RegExp(`exchange=(\\d+)">\\d+</a></td><td>[^<]*</td><td>${what}<`).exec(await page()) ?? []
    assert.ok(number, `an exchange ${what}`)
    return (await page(`?exchange=${number}`)).replaceAll(/<[^>]+>/g, ' ').replaceAll('&quot;', '"')
  }
  return { url: sandbox.url, page, explained, merchant: merchantOf(sandbox.url) }
}

test('the page shows merchants with balances, orders, callbacks and exchanges, and loads nothing from elsewhere', async (t) => {
  const { notifyUrl } = await receiveCallbacks(t, () => [500, 'not <b>now</b>'])
  const { url, page, merchant } = await start(t, { callbackRetries: [], balance: 100_000n })
  await merchant.apply({ notifyUrl, mchOrderNo: '<i>"1" & \'2\'</i>' })
  await merchant.create({ mchOrderNo: 'PAYIN7' })
  await until('it is called back about', async () => (await merchant.orders())[0]?.callbacksSent === 1)
  const response = await fetch(`${url}/`)
  assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  const shown = await response.text()
  for (const text of [
    `<td>${MCH_ID}</td><td>₹895.00</td><td>₹0.00</td>`,
    '<td>&lt;i&gt;&quot;1&quot; &amp; &#39;2&#39;&lt;/i&gt;</td>',
    '<td>₹100.00</td><td>2 success</td>',
    '<td>••••6789</td>',
    '<td>PAYIN7</td>',
    '<td>0 waiting</td>',
    '<td>500</td><td>not &lt;b&gt;now&lt;/b&gt;</td>',
    '<td>apply</td><td>M1000</td>',
    '<td>HTTP 500, not acknowledged</td>',
  ]) {
    assert.ok(shown.includes(text), text)
  }
  assert.doesNotMatch(shown, /<i>|<b>|<script|src=|href="(?!\/)/)
  assert.match(shown, /http-equiv="refresh"/)
  assert.doesNotMatch(await page('?refresh=no'), /http-equiv="refresh"/)
  assert.doesNotMatch(await page('?exchange=1'), /http-equiv="refresh"/)
  assert.match(await page('?exchange=99999'), /not kept any more/)
})

test('an exchange is explained step by step, without keys or personal details', async (t) => {
  const { notifyUrl } = await receiveCallbacks(t)
  const { explained, merchant } = await start(t)
  await merchant.apply({
    notifyUrl,
    accountNo: '50100987654321',
    phoneNumber: '9876543210',
    payerEmail: 'asha.rao@example.test',
    extra: '{"value":"asha.rao@okaxis"}',
    remark: '',
  })
  await until('it is called back about', async () => (await merchant.orders())[0]?.callbacksSent === 1)
  const request = await explained('apply')
  assert.match(
    request,
    /accountBankCode=BANK&amp;accountName=••••&amp;accountNo=••••4321&amp;amount=10000&amp;/,
  )
  assert.match(request, /remark\s+empty/)
  assert.match(request, /notifyUrl=\S+&amp;payerEmail=••••&amp;phoneNumber=••••3210&amp;key=…/)
  assert.match(request, /MD5 over UTF-8, upper-case hex/)
  assert.match(
    request,
    /agentpayOrderId=AP\d+&amp;fee=500&amp;retCode=SUCCESS&amp;retMsg=accepted&amp;status=1&amp;key=…/,
  )
  assert.match(request, /It was made with the newest key/)
  const callback = await explained('callback')
  assert.match(callback, /agentpayOrderId=AP\d+&amp;amount=10000&amp;/)
  for (const text of [request, callback]) {
    assert.doesNotMatch(text, /50100987654321|9876543210|asha|Rao|test-key-of-M1000|an older key/)
  }
})

test('the page says whether a signature is good, with which key, and which variant would explain a wrong one', async (t) => {
  const { explained, merchant, url } = await start(t)
  await merchant.apply({ mchOrderNo: 'GOOD' })
  assert.match(await explained('apply'), /It is good, with the newest key/)
  await merchantOf(url, 'an older key').apply({ mchOrderNo: 'OLDER' })
  const older = await explained('apply')
  assert.match(older, /It is good, with older key 1/)
  assert.match(older, /It was made with older key 1/)

  const ask = async (signature: string) => {
    const body = new URLSearchParams({ ...payout(), sign: signature }).toString()
    await merchant.raw('/api/agentpay/apply', body)
    return await explained('apply')
  }
  const good = sign(payout(), KEY)
  assert.match(await ask(good.toLowerCase()), new RegExp(`with the newest key it would be ${good}`))
  assert.match(await ask(good.toLowerCase()), /would be right with .*hexCase lower/)
  assert.match(await ask(sign(payout(), 'another key')), /No other variant/)
  assert.match(await ask(''), /The request has none/)
  await merchant.apply({ mchOrderNo: 'SPOILT', accountNo: '9999000009' })
  assert.match(await explained('apply'), /It was made wrong on purpose/)
  await merchant.apply({ mchId: 'M404' })
  assert.match(await explained('apply'), /No merchant has this mchId/)
})

test('the last 1,000 exchanges are kept, newest first, each under its number', () => {
  const exchanges = new Exchanges()
  const merchant = { id: 1, mchId: MCH_ID, keys: [KEY] as const, dialect: STANDARD }
  const delivery = {
    acknowledged: true,
    at: 0,
    httpStatus: 200,
    answer: 'success',
    error: null,
    durationMs: 1,
  }
  const told = (at: number): RecordedCall => ({
    ...{ kind: 'told', at, notifyUrl: 'http://127.0.0.1:1/', fields: {}, signature: '', merchant, delivery },
  })
  for (let at = 1; at <= 1_500; at++) exchanges.keep(told(at))
  const kept = [...exchanges.latest()]
  assert.equal(kept.length, 1_000)
  assert.ok(kept.every(([number, { at }], i) => number === at && at === 1_500 - i))
  assert.deepEqual(
    [0, 500, 501, 1_500, 1_501].map((number) => exchanges.numbered(number)?.at),
    [undefined, undefined, 501, 1_500, undefined],
  )
})
