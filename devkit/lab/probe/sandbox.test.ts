import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { createGatewayClient } from '../../../src/gateway/client.ts'
import { loadDialect } from '../../../src/gateway/dialect/dialect-file.ts'
import { ORDER } from '../../../src/gateway/testing.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { startSandbox } from '../../sandbox/sandbox.ts'
import { probe } from './probe.ts'

const [MCH_ID, KEY] = ['1000100', 'a-key-of-this-test']

const plain = <T>(fields: { [name in keyof T]: fc.Arbitrary<T[name]> }) =>
  fc.record(fields, { noNullPrototype: true })

/** Every setting that a probe can find. */
const anyDialect = plain({
  body: fc.constantFrom('form', 'json', 'query'),
  sign: plain({
    algorithm: fc.constantFrom('md5', 'hmac-sha256'),
    sort: fc.constantFrom('whole-ignoring-case', 'name'),
    hexCase: fc.constantFrom('upper', 'lower'),
    keySuffix: fc.constantFrom('key', 'appSecret'),
    emptyFields: plain({ requests: fc.boolean(), answers: fc.boolean() }),
    failures: fc.boolean(),
  }),
  paths: plain({
    balance: fc.constantFrom('/api/agentpay/query_balance', '/api/agentpay/query_order'),
    payoutQuery: fc.constantFrom('/api/pay/orderquery', '/api/pay/query_order'),
  }),
})

test('whatever the sandbox’s dialect, a probe that knows an order finds all of it', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  t.after(() => rmSync(folder, { recursive: true }))
  let number = 0
  await fc.assert(
    fc.asyncProperty(anyDialect, async (spoken) => {
      const state = path.join(folder, `${++number}.sqlite`)
      const merchants = [{ mchId: MCH_ID, key: KEY }]
      const sandbox = await startSandbox({ state, merchants, dialect: spoken, settleMs: 3_600_000 })
      const ours = { baseUrl: sandbox.url, mchId: MCH_ID, key: KEY, clock: systemClock }
      const client = createGatewayClient({ ...ours, dialect: loadDialect('default', spoken), connections: 1 })
      try {
        assert.equal((await client.apply(ORDER, { mayStillSend: () => true })).kind, 'accepted')
        const known = { tls: {}, knownOrder: ORDER.mchOrderNo, pace: () => Promise.resolve() }
        const outcome = await probe({ ...ours, ...known })
        assert.ok(outcome.kind === 'found', outcome.kind)
        const paths = { ...spoken.paths, payinQuery: '/api/pay/orderquery' }
        assert.deepEqual(outcome.dialect, { extends: 'default', ...spoken, paths })
      } finally {
        await client.close()
        await sandbox.stop()
      }
    }),
    { numRuns: 40, seed: 4 },
  )
})
