import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { paise } from '../payout/money.ts'
import type { ApplyOrder } from './apply.ts'
import type { Dialect } from './dialect.ts'
import { loadDialect } from './dialect-file.ts'
import { type Fields, signature } from './sign.ts'
import type { Sent } from './transport.ts'

/** What the tests of this folder share. All of it is invented. */
export const KEY = 'Kb18f32c912daa29d'

export const DIALECT: Dialect = loadDialect('default', {
  retCodes: {
    apply: {
      refused: ['IFSC_INVALID', 'REFUSED'],
      retryLater: ['TOO_FAST', 'BALANCE_SHORT'],
      balanceShort: ['BALANCE_SHORT'],
      duplicate: ['DUPLICATE_ORDER'],
    },
    query: { notFound: ['ORDER_NOT_FOUND'], retry: ['TOO_FAST'] },
  },
})

export const ORDER: ApplyOrder = {
  mchOrderNo: 'PABCDEFGHIJKLMNOPQRSTUVWXYZ234',
  amount: paise(1_234_500),
  currency: 'INR',
  accountName: 'Asha Menon',
  accountNo: '50100123456789',
  ifsc: 'HDFC0001234',
  vpa: null,
  phoneNumber: '9876543210',
  payerEmail: 'asha.menon@example.in',
  remark: 'November salary',
  notifyUrl: 'https://pay.example.in/callbacks/payouts/acme?x=1',
}

/** The text of an answer with its signature; numbers and nulls stay what they are. */
export function signedJson(
  fields: Record<string, string | number | null>,
  dialect = DIALECT,
  key = KEY,
): string {
  const entries: Fields = new Map(Object.entries(fields))
  return JSON.stringify({ ...fields, sign: signature(entries, key, dialect.sign, 'answers') })
}

/** An answer as it comes from the transport. */
export const answered = (body: string | Buffer, httpStatus = 200): Sent => ({
  kind: 'answered',
  httpStatus,
  body: Buffer.from(body),
  tookMs: 3,
})

export type Seen = { path: string; headers: IncomingMessage['headers']; body: string }

/** A server that keeps what it saw and answers as told. Closed with the test. */
export async function startServer(
  t: TestContext,
  answer: (seen: Seen, response: ServerResponse) => void,
): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const one = { path: request.url ?? '', headers: request.headers, body }
    seen.push(one)
    answer(one, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}
