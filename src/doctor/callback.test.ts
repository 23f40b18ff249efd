import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { readerOf, testLedger } from '../../test/ledger.ts'
import { DECISIONS } from '../domain/decisions.ts'
import { parsePayoutCallback } from '../gateway/callbacks/callback.ts'
import { loadDialect } from '../gateway/dialect/dialect-file.ts'
import { KeptCallbacks } from '../ledger/callbacks/kept-callbacks.ts'
import { createHttpServer, listen } from '../platform/http.ts'
import { silentLogger } from '../platform/log.ts'
import { Metrics } from '../platform/metrics.ts'
import { systemClock } from '../platform/running/clock.ts'
import { callbackPath } from '../stages/outcomes/callback-endpoint.ts'
import { payoutCallbackEndpoint } from '../stages/outcomes/outcomes.ts'
import { type CallbackToCheck, callbackChecks, checkCallback, type EndpointAnswer } from './callback.ts'

const DIALECT = loadDialect('sandbox')

/** The real endpoint, for the merchant `acme`. */
async function endpoint(t: TestContext): Promise<string> {
  const { ledger, config } = await testLedger(t)
  const metrics = new Metrics()
  const server = createHttpServer()
  payoutCallbackEndpoint({
    ledger,
    decisions: DECISIONS,
    queryPolicies: new Map(),
    counted: metrics.counter('evidence_total', 'evidence', ['source', 'outcome']),
    readers: new Map([['acme', readerOf({ dialect: DIALECT, key: 'key' }, parsePayoutCallback)]]),
    kept: new KeptCallbacks({ db: ledger.db, sealing: config.sealing, kind: 'payout' }),
    clock: systemClock,
    log: silentLogger,
    answered: metrics.counter('callbacks_total', 'callbacks', ['merchant', 'answer']),
    took: metrics.seconds('callback_seconds', 'seconds', []),
  }).routes(server)
  const url = await listen(server, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  return url
}

const callback = (fields: Partial<CallbackToCheck> = {}): CallbackToCheck => ({
  merchantId: 'acme',
  url: 'https://pay.example.in/callbacks/payout/acme',
  gatewayUrl: 'https://gateway.example.in',
  configured: true,
  ...fields,
})

async function check(url: string, merchantId = 'acme') {
  const [one] = callbackChecks([
    callback({ merchantId, url: url + callbackPath('payout', merchantId), gatewayUrl: 'http://127.0.0.1:1' }),
  ])
  return one?.run()
}

const judge = (answer: EndpointAnswer, fields: Partial<CallbackToCheck> = {}) =>
  checkCallback(callback(fields), answer)

test("doctor recognises payoutd's own endpoint by how it refuses a wrong signature", async (t) => {
  const url = await endpoint(t)
  assert.equal((await check(url))?.state, 'good')
  const other = await check(url, 'bolt')
  assert.match(other?.what ?? '', /does not know the merchant bolt/)
})

test('if nothing listens, the finding says that', async () => {
  const finding = await check('http://127.0.0.1:2')
  assert.match(finding?.what ?? '', /nothing answers at .* \(ECONNREFUSED\)/)
})

test('a proxy that drops the query string is detected: callbacks are all query string', () => {
  assert.match(judge({ status: 400, text: 'malformed: empty' }).what, /dropped or changed the query string/)
})

test('any other answer is not taken for payoutd', () => {
  assert.match(judge({ status: 200, text: 'success' }).what, /something other than payoutd/)
  assert.match(judge({ status: 302, text: '' }).what, /something other than payoutd/)
  assert.match(judge({ status: 404, text: 'not found' }).what, /something other than payoutd/)
  assert.match(judge({ status: 401, text: 'log in first' }).what, /something other than payoutd/)
})

test('an address that only this machine can reach is no use to a gateway elsewhere', () => {
  const answer = { status: 401, text: 'bad signature' }
  const local = { url: 'http://localhost:8080/callbacks/payout/acme' }
  assert.equal(judge(answer).state, 'good')
  assert.match(judge(answer, local).what, /gateway.example.in cannot reach http:\/\/localhost:8080/)
  assert.equal(judge(answer, { ...local, gatewayUrl: 'http://127.0.0.1:8790' }).state, 'good')
})
