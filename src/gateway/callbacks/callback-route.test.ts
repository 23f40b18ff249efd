import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createHttpServer } from '../../platform/http.ts'
import { Metrics } from '../../platform/metrics.ts'
import { type CallbackRoute, receiveCallbacks } from './callback-route.ts'

/** An endpoint for acme and bolt whose readers report the raw query string. */
function endpoint(t: TestContext, store: CallbackRoute<string>['store']) {
  const server = createHttpServer()
  t.after(() => server.close())
  const read = (rawQuery: string) => ({ kind: 'verified' as const, report: rawQuery })
  receiveCallbacks<string>(server, {
    url: '/callbacks/:merchantId',
    readers: new Map(['acme', 'bolt'].map((merchantId) => [merchantId, read])),
    store,
    keep: async () => 'unknown-order',
    answered: new Metrics().counter('answered', 'Answers.', ['merchant', 'answer']),
  })
  return async (merchantId: string, rawQuery: string): Promise<number> =>
    (await server.inject({ method: 'POST', url: `/callbacks/${merchantId}?${rawQuery}` })).statusCode
}

test('callbacks of one merchant that wait for the database leave room for another merchant’s', async (t) => {
  const locked = Promise.withResolvers<boolean>()
  const post = endpoint(t, async (merchantId) => (merchantId === 'acme' ? locked.promise : true))
  const ofAcme = Array.from({ length: 501 }, (_, i) => post('acme', `n=${i}`))
  assert.equal(await Promise.race(ofAcme), 503)
  assert.equal(await post('bolt', 'n=1'), 200)
  locked.resolve(true)
  const answers = await Promise.all(ofAcme)
  assert.equal(answers.filter((status) => status === 200).length, 500)
  assert.equal(await post('acme', 'n=1'), 200)
})

test('a question mark in a value is part of the value', async (t) => {
  const stored: string[] = []
  const post = endpoint(t, async (_, rawQuery) => {
    stored.push(rawQuery)
    return true
  })
  assert.equal(await post('acme', 'errorMessage=name mismatch?&sign=A'.replaceAll(' ', '+')), 200)
  assert.deepEqual(stored, ['errorMessage=name+mismatch?&sign=A'])
})
