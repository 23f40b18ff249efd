import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startSandbox } from '../sandbox.ts'
import { KEY, MCH_ID, merchantOf, newStateFile, press } from '../testing.ts'

async function start(t: TestContext) {
  const sandbox = await startSandbox({ state: newStateFile(), merchants: [{ mchId: MCH_ID, key: KEY }] })
  t.after(() => sandbox.stop())
  const merchant = merchantOf(sandbox.url)
  const create = async (over: Record<string, string> = {}) => {
    const { payOrderId, payParams } = (await merchant.create(over)).fields
    return { payOrderId: String(payOrderId), payParams: payParams as Record<string, string> }
  }
  return { ...merchant, url: sandbox.url, create }
}

/** The page as a browser gets it, and its text. */
async function open(address: string, init: RequestInit = {}) {
  const response = await fetch(address, init)
  return { response, page: await response.text() }
}

/** Sends a form of the page. */
const send = (url: string, page: string, label: string) => {
  const [, action] = new RegExp(`action="([^"]+)">\\s*<button>${label}</button>`).exec(page) ?? []
  assert.ok(action, `a button ${label}`)
  return open(`${url}${action}`, { method: 'POST', redirect: 'follow', body: new URLSearchParams() })
}

test('the page shows what to pay, as a QR code and as a link too, and loads nothing from elsewhere', async (t) => {
  const { create } = await start(t)
  const { payParams } = await create({ amount: '1234567800', mchOrderNo: '<b>"1" & \'2\'</b>' })
  const { response, page } = await open(payParams.payUrl ?? '')
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
  assert.ok(page.includes('₹1,23,45,678.00'))
  assert.ok(page.includes(`href="${payParams.url?.replaceAll('&', '&amp;')}"`))
  assert.match(page, /<svg [^>]*viewBox/)
  assert.ok(page.includes('<dd>&lt;b&gt;&quot;1&quot; &amp; &#39;2&#39;&lt;/b&gt;</dd>'))
  const left = Number(/data-left-ms="(\d+)"/.exec(page)?.[1])
  assert.ok(left > 0 && left <= 900_000)
  assert.doesNotMatch(page, /\ssrc=|@import|url\(|href="https?:/)
})

test('a payer presses Pay, sees that the payin is paid, and returns to the shop', async (t) => {
  const { url, create, payins } = await start(t)
  const returnUrl = 'https://shop.test/done?order=1&x="y"'
  const { payParams } = await create({ returnUrl })
  const { page } = await open(payParams.payUrl ?? '')
  assert.doesNotMatch(page, /http-equiv|shop\.test/)
  const { response, page: after } = await send(url, page, 'Pay')
  assert.ok(response.redirected)
  assert.equal(response.url, payParams.payUrl)
  const [payin] = await payins()
  assert.equal(payin?.status, 2)
  assert.ok(after.includes('Paid. Thank you!'))
  assert.ok(after.includes(`<dd>${payin.utr}</dd>`))
  const address = 'https://shop.test/done?order=1&amp;x=&quot;y&quot;'
  assert.ok(after.includes(`<meta http-equiv="refresh" content="3; url=${address}">`))
  assert.ok(after.includes(`<a href="${address}">`))
  assert.doesNotMatch(after, /<form|<script/)
})

test('without a returnUrl the page of an ended payin stays', async (t) => {
  const { url, create } = await start(t)
  const { payParams } = await create()
  const { page } = await send(url, (await open(payParams.payUrl ?? '')).page, 'Pay')
  assert.ok(page.includes('Paid. Thank you!'))
  assert.doesNotMatch(page, /http-equiv/)
})

test('the other buttons make it fail, expire, or be paid without a report, which shows the UTR', async (t) => {
  const { url, create, queryPayin } = await start(t)
  const ends = [
    ['Let the bank decline it', 'The bank of the payer declined the payment'],
    ['Let it expire now', 'The order expired before it was paid'],
  ] as const
  for (const [i, [label, errorMessage]] of ends.entries()) {
    const { payParams } = await create({ mchOrderNo: `E${i}` })
    const { page } = await send(url, (await open(payParams.payUrl ?? '')).page, label)
    assert.ok(page.includes(`<p>${errorMessage}</p>`))
    const { fields } = await queryPayin(`E${i}`)
    assert.deepEqual([fields.status, fields.errorMessage], [3, errorMessage])
  }
  const { payParams, payOrderId } = await create({ mchOrderNo: 'U1' })
  const told = await send(url, (await open(payParams.payUrl ?? '')).page, 'Pay without telling the gateway')
  const [, utr] = /<dt>UTR, not told<\/dt><dd>(\d{12})<\/dd>/.exec(told.page) ?? []
  assert.ok(utr)
  assert.equal((await queryPayin('U1')).fields.status, 0)
  assert.equal((await merchantOf(url).recover(payOrderId, utr)).fields.retCode, 'SUCCESS')
  const { page } = await open(payParams.payUrl ?? '')
  assert.ok(page.includes(`<dt>UTR</dt><dd>${utr}</dd>`))
  assert.doesNotMatch(page, /not told/)
})

test('no button changes an ended payin, and a wrong number has no page', async (t) => {
  const { url, create, payins, books } = await start(t)
  const { payOrderId } = await create()
  assert.equal((await press(url, payOrderId, 'pay')).status, 200)
  const [paid] = await payins()
  const { everything } = await books()
  for (const button of ['pay', 'fail', 'expire', 'pay-untold']) {
    const response = await press(url, payOrderId, button)
    assert.equal(response.status, 409)
    assert.deepEqual(await response.json(), { error: 'the order has ended' })
  }
  const [after] = await payins()
  assert.deepEqual([after?.status, after?.utr], [2, paid?.utr])
  assert.deepEqual((await books()).everything, everything)
  for (const number of ['PI202611210000000099', 'AP202611210000000001', 'x']) {
    assert.equal((await fetch(`${url}/checkout/${number}`)).status, 404)
    assert.equal((await press(url, number, 'pay')).status, 404)
  }
})

test('payUrl begins with the public address if there is one', async (t) => {
  const sandbox = await startSandbox({
    state: newStateFile(),
    merchants: [{ mchId: MCH_ID, key: KEY }],
    publicUrl: 'https://pay.test',
  })
  t.after(() => sandbox.stop())
  const { payOrderId, payParams } = (await merchantOf(sandbox.url).create()).fields
  assert.equal((payParams as { payUrl: string }).payUrl, `https://pay.test/checkout/${payOrderId}`)
})
