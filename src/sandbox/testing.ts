import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Signable, sign } from './sign.ts'

export const MCH_ID = 'M1000'
export const KEY = 'test-key-of-M1000'

const directory = mkdtempSync(join(tmpdir(), 'sandbox-'))
process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
let files = 0

/** A state file that no other test has; it is gone when the tests are. */
export const newStateFile = (): string => join(directory, `${++files}.sqlite`)

/** Every field that apply needs; a test overrides what it is about. */
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

export type Answer = { http: number; fields: Record<string, unknown>; signedWell: boolean }

/** A merchant of the sandbox at `url`. */
export function merchantOf(url: string) {
  const raw = async (path: string, body: string, signal?: AbortSignal): Promise<Answer> => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body,
      ...(signal ? { signal } : {}),
    })
    const text = await response.text()
    const fields = text.startsWith('{') ? JSON.parse(text) : { text }
    return { http: response.status, fields, signedWell: fields.sign === sign(fields, KEY) }
  }
  const post = (path: string, params: Record<string, string>, signal?: AbortSignal) =>
    raw(path, new URLSearchParams({ ...params, sign: sign(params, KEY) }).toString(), signal)
  const asked = { mchId: MCH_ID, reqTime: '20261121120000' }
  const judge = async (path: string) => await (await fetch(`${url}/_sandbox/${path}?mchId=${MCH_ID}`)).text()
  return {
    raw,
    post,
    apply: (over: Record<string, string> = {}, signal?: AbortSignal) =>
      post('/api/agentpay/apply', payout(over), signal),
    query: (mchOrderNo: string) => post('/api/pay/query_order', { ...asked, mchOrderNo }),
    balance: async () => (await post('/api/agentpay/query_balance', asked)).fields,
    books: async (): Promise<BooksSeen> => JSON.parse(await judge('books')),
    orders: async (): Promise<OrderSeen[]> =>
      (await judge('orders')).split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)])),
  }
}

export type BooksSeen = {
  accounts: Record<string, string>
  balancesAgree: boolean
  movements: Record<string, number>
  orders: Record<string, number>
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

export type Callback = {
  method: string
  path: string
  body: string
  params: Record<string, string>
  signedWell: boolean
}

/** Where callbacks arrive. `answer` says what each gets, with its HTTP status. */
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

/** Resolves once `holds`; fails after 30 s, naming what never came. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const patience = AbortSignal.timeout(30_000)
  while (!(await holds())) {
    if (patience.aborted) throw new Error(`waited in vain: ${what}`)
    await delay(5)
  }
}
