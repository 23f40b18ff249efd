import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { STANDARD } from './wire/dialect.ts'
import { type Signable, sign as signIn } from './wire/sign.ts'

export const MCH_ID = 'M1000'
export const KEY = 'test-key-of-M1000'

/** The signature of a request in the standard dialect; also of an answer or callback, as none signs empty ones. */
export const sign = (params: Signable, key: string): string => signIn(params, key, STANDARD.sign, 'requests')

const directory = mkdtempSync(join(tmpdir(), 'sandbox-'))
process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
let files = 0

/** A state file for one test only, deleted after the tests. */
export const newStateFile = (): string => join(directory, `${++files}.sqlite`)

/** Every field that apply needs; a test overrides those it is about. */
export const payout = (over: Record<string, string> = {}): Record<string, string> => ({
  mchId: MCH_ID,
  mchOrderNo: 'ORDER1',
  amount: '10000',
  currency: 'INR',
  accountName: 'Asha Rao',
  accountNo: '50100123456789',
  accountBankCode: 'BANK',
  notifyUrl: 'http://127.0.0.1:1/never',
  extra: '{"value":"HDFC0001234"}',
  ...over,
})

/** Every field that neworder needs; a test overrides those it is about. */
export const payin = (over: Record<string, string> = {}): Record<string, string> => ({
  mchId: MCH_ID,
  mchOrderNo: 'PAYIN1',
  amount: '10000',
  currency: 'INR',
  notifyUrl: 'http://127.0.0.1:1/never',
  ...over,
})

export type HttpAnswer = { http: number; fields: Record<string, unknown>; signedWell: boolean }

/** A merchant of the sandbox at `url` that signs with `key`. */
export function merchantOf(url: string, key = KEY) {
  const raw = async (path: string, body: string, signal?: AbortSignal): Promise<HttpAnswer> => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body,
      ...(signal ? { signal } : {}),
    })
    const text = await response.text()
    const fields = text.startsWith('{') ? JSON.parse(text) : { text }
    return { http: response.status, fields, signedWell: fields.sign === sign(fields, key) }
  }
  const post = (path: string, params: Record<string, string>, signal?: AbortSignal) =>
    raw(path, new URLSearchParams({ ...params, sign: sign(params, key) }).toString(), signal)
  const asked = { mchId: MCH_ID, reqTime: '20261121120000' }
  const check = async (path: string) =>
    await (await fetch(`${url}/_sandbox/${path}${path.includes('?') ? '&' : '?'}mchId=${MCH_ID}`)).text()
  const lines = async (path: string) =>
    (await check(path)).split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
  return {
    raw,
    post,
    apply: (over: Record<string, string> = {}, signal?: AbortSignal) =>
      post('/api/agentpay/apply', payout(over), signal),
    query: (mchOrderNo: string) => post('/api/pay/query_order', { ...asked, mchOrderNo }),
    balance: async () => (await post('/api/agentpay/query_balance', asked)).fields,
    books: async (): Promise<BooksSeen> => JSON.parse(await check('books')),
    orders: (): Promise<OrderSeen[]> => lines('orders'),
    create: (over: Record<string, string> = {}) => post('/api/pay/neworder', payin(over)),
    queryPayin: (mchOrderNo: string, executeNotify = 'false') =>
      post('/api/pay/orderquery', { mchId: MCH_ID, mchOrderNo, executeNotify }),
    recover: (payOrderId: string, channelPayNo: string) =>
      post('/api/pay/replace', { mchId: MCH_ID, payOrderId, channelPayNo }),
    /** Presses a button of the checkout page, as a script does. */
    press: async (payOrderId: string, button: string): Promise<PayinSeen> =>
      (await press(url, payOrderId, button)).json() as Promise<PayinSeen>,
    payins: (): Promise<PayinSeen[]> => lines('payins'),
    deliveries: async (order: string): Promise<DeliverySeen[]> =>
      JSON.parse(await check(`deliveries?order=${order}`)),
  }
}

export type BooksSeen = {
  accounts: Record<string, string>
  balancesAgree: boolean
  movements: Record<string, number>
  orders: Record<string, number>
  payins: Record<string, number>
  everything: { entries: number; sum: string }
}

export type OrderSeen = {
  mchOrderNo: string
  agentpayOrderId: string
  amount: string
  fee: string
  status: number
  timesPaid: number
  applyCalls: number
  utr: string | null
  accountNoMasked: string
  callbacksSent: number
  callbacksAcknowledged: number
}

export type PayinSeen = {
  mchOrderNo: string
  payOrderId: string
  amount: string
  fee: string
  status: number
  errorMessage: string | null
  utr: string | null
  untoldUtrs: string[]
  expiresAt: number
  paidAt: number | null
  callbacksSent: number
  notifyStatus: number
}

export type DeliverySeen = {
  mchOrderNo: string
  orderId: string
  attempt: number
  at: number
  httpStatus: number | null
  answer: string
  error: string | null
  durationMs: number
}

/** Posts to a button of the checkout page and asks for JSON. */
export const press = (url: string, payOrderId: string, button: string): Promise<Response> =>
  fetch(`${url}/checkout/${payOrderId}/${button}`, {
    method: 'POST',
    headers: { accept: 'application/json' },
  })

export type Callback = {
  method: string
  path: string
  /** Without the question mark. */
  query: string
  body: string
  params: Record<string, string>
  signedWell: boolean
}

/** An endpoint for callbacks. `answer` returns each one's answer and HTTP status. */
export async function receiveCallbacks(
  t: TestContext,
  answer: (callback: Callback, nth: number) => [number, string] = () => [200, 'success'],
) {
  const received: Callback[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const url = new URL(request.url ?? '', 'http://any')
    const params = Object.fromEntries(url.searchParams)
    const callback = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.search.slice(1),
      body,
      params,
      signedWell: params.sign === sign(params as Signable, KEY),
    }
    received.push(callback)
    const [status, text] = answer(callback, received.length)
    response.writeHead(status).end(text)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    received,
    about: (mchOrderNo: string) => received.filter(({ params }) => params.mchOrderNo === mchOrderNo),
    notifyUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks/payout/${MCH_ID}`,
  }
}

/** Resolves once `holds`; fails after 30 s and names what never came. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const patience = AbortSignal.timeout(30_000)
  while (!(await holds())) {
    if (patience.aborted) throw new Error(`waited in vain: ${what}`)
    await delay(5)
  }
}
