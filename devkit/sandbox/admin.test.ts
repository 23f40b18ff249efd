import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startSandbox } from './sandbox.ts'
import { KEY, newStateFile } from './testing.ts'

const JSON_WANTED = 'the body must be JSON, with the header content-type: application/json'

async function start(t: TestContext) {
  const sandbox = await startSandbox({ state: newStateFile(), merchants: [] })
  t.after(() => sandbox.stop())
  return async (what: string, body?: string, type = 'application/json') => {
    const request = body === undefined ? {} : { body, headers: { 'content-type': type } }
    const response = await fetch(`${sandbox.url}/_sandbox/${what}`, { method: 'POST', ...request })
    return [response.status, ((await response.json()) as { error?: string }).error] as const
  }
}

test('a body that is not JSON, or is not declared as JSON, gets an error that says what is wanted', async (t) => {
  const post = await start(t)
  const merchant = JSON.stringify({ mchId: 'M1', key: KEY })
  for (const what of ['merchants', 'faults', 'clock']) {
    for (const type of ['application/x-www-form-urlencoded', 'text/plain']) {
      assert.deepEqual(await post(what, merchant, type), [415, JSON_WANTED])
    }
    for (const body of ['', '{"mchId"', 'mchId=M1'])
      assert.deepEqual(await post(what, body), [400, JSON_WANTED])
    assert.deepEqual(await post(what), [400, JSON_WANTED])
  }
  assert.deepEqual(await post('merchants', merchant), [201, undefined])
})

test('all faults of the JSON are reported at once, by field and in words', async (t) => {
  const post = await start(t)
  const faultsOf = async (what: string, json: unknown) => {
    const [status, error = ''] = await post(what, JSON.stringify(json))
    assert.equal(status, 400)
    return error.split('; ')
  }
  const wrong = {
    key: 7,
    olderKeys: 'k',
    balance: '-1',
    dialect: { body: 'xml', sing: {}, sign: { a: 1 } },
    x: 1,
  }
  assert.deepEqual(await faultsOf('merchants', wrong), [
    'mchId: is required',
    'key: must be a text',
    'olderKeys: must be a list',
    'balance: must be a text of at most 15 digits: whole paise',
    'dialect.body: must be one of form, json, query',
    'dialect.sign.a: is not known here',
    'dialect.sing: is not known here',
    'x: is not known here',
  ])
  assert.deepEqual(await faultsOf('merchants', { mchId: '', key: 'k'.repeat(201) }), [
    'mchId: must be at least 1 in length',
    'key: must be at most 200 in length',
  ])
  assert.deepEqual(await faultsOf('merchants', []), ['the whole: must be a JSON object'])
  const [kind = ''] = await faultsOf('faults', { fault: 'hangs' })
  assert.match(kind, /^fault: must be one of delay, hang, reset, /)
  assert.deepEqual(await faultsOf('faults', { fault: 'hang', operation: 'apply', next: 1.5, done: 'no' }), [
    'next: must be a whole number',
    'done: must be true or false',
  ])
  assert.deepEqual(await faultsOf('faults', { fault: 'hang', operation: 'apply', next: 0, percent: 101 }), [
    'next: must be more than 0',
    'percent: must be at most 100',
    'next: exactly one of next and percent is required',
  ])
  assert.deepEqual(await faultsOf('clock', { advanceMs: -1 }), ['advanceMs: must be at least 0'])
})
