import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { paise } from '../domain/money.ts'
import type { ApplyOrder } from './calls/apply.ts'
import type { PayinOrder } from './calls/payin-create.ts'
import type { Dialect } from './dialect/dialect.ts'
import { loadDialect } from './dialect/dialect-file.ts'
import type { SentRequest } from './transport/transport.ts'
import { type Fields, type SignRules, signature } from './wire/sign.ts'
import type { SignVariant } from './wire/sign-variants.ts'

/** Shared by the tests of this folder. All values are invented. */
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
    payinCreate: { refused: ['AMOUNT_INVALID'], retryLater: ['TOO_FAST'], duplicate: ['DUPLICATE_ORDER'] },
    payinQuery: { notFound: ['ORDER_NOT_FOUND'], retry: ['TOO_FAST'] },
    payinRecovery: { refused: ['UTR_USED'], notFound: ['UTR_NOT_FOUND'], retryLater: ['TOO_FAST'] },
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
  notifyUrl: 'https://pay.example.in/callbacks/payouts/acme',
}

export const PAYIN: PayinOrder = {
  mchOrderNo: 'C2026112100001',
  amount: paise(25_000),
  currency: 'INR',
  phoneNumber: '9876501234',
  payerEmail: 'dev.nair@example.in',
  accountName: 'Dev Nair',
  notifyUrl: 'https://pay.example.in/callbacks/payins/acme',
  returnUrl: 'https://shop.example.in/thanks?order=7',
  remark: 'Order 7',
}

/** The text of an answer with its signature; numbers and nulls keep their types. */
export function signedJson(
  fields: Record<string, string | number | null>,
  dialect = DIALECT,
  key = KEY,
): string {
  const entries: Fields = new Map(Object.entries(fields))
  return JSON.stringify({ ...fields, sign: signature(entries, key, dialect.sign, 'answers') })
}

/** An answer as the transport returns it. */
export const answered = (body: string | Buffer, httpStatus = 200): SentRequest => ({
  kind: 'answered',
  httpStatus,
  body: Buffer.from(body),
  tookMs: 3,
})

/** Every signature variant that a dialect can describe. */
export const EVERY_VARIANT: SignVariant[] = []
for (const algorithm of ['md5', 'hmac-sha256'] as const)
  for (const hexCase of ['upper', 'lower'] as const)
    for (const keySuffix of ['key', 'appSecret'] as const)
      for (const sort of ['whole-ignoring-case', 'name'] as const)
        for (const emptyFields of [false, true])
          EVERY_VARIANT.push({ algorithm, hexCase, keySuffix, sort, emptyFields })

/** The dialect's rules for one such variant, the same in every direction. */
export const rulesOf = ({ emptyFields, ...rules }: SignVariant): SignRules => ({
  ...rules,
  emptyFields: { requests: emptyFields, answers: emptyFields, callbacks: emptyFields },
  failures: true,
})

export type Seen = { path: string; headers: IncomingMessage['headers']; body: string }

/** A server that records requests and answers as the test says. It closes with the test. */
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
