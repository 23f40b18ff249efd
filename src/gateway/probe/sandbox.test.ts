import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../platform/clock.ts'
import { systemIds } from '../../platform/ids.ts'
import { startSandbox } from '../../sandbox/sandbox.ts'
import { probe } from './probe.ts'

const [MCH_ID, KEY] = ['1000100', 'a-key-of-this-test']

function* everyDialect() {
  for (const body of ['form', 'json', 'query'] as const)
    for (const algorithm of ['md5', 'hmac-sha256'] as const)
      for (const sort of ['whole-ignoring-case', 'name'] as const)
        for (const hexCase of ['upper', 'lower'] as const)
          for (const keySuffix of ['key', 'appSecret'] as const)
            for (const requests of [false, true])
              for (const failures of [true, false]) {
                const emptyFields = { requests, answers: false, callbacks: false }
                yield { body, sign: { algorithm, sort, hexCase, keySuffix, emptyFields, failures } }
              }
}

test('whatever dialect the sandbox speaks, a probe finds it', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  t.after(() => rmSync(folder, { recursive: true }))
  let number = 0
  for (const dialect of everyDialect()) {
    const state = path.join(folder, `${++number}.sqlite`)
    const sandbox = await startSandbox({ state, merchants: [{ mchId: MCH_ID, key: KEY }], dialect })
    try {
      const outcome = await probe({
        ...{ baseUrl: sandbox.url, mchId: MCH_ID, key: KEY, knownOrder: null },
        ...{ clock: systemClock, ids: systemIds, pace: () => Promise.resolve() },
      })
      assert.ok(outcome.kind === 'found', `${outcome.kind}: ${JSON.stringify(dialect)}`)
      const { algorithm, sort, hexCase, keySuffix, emptyFields, failures } = dialect.sign
      // The sandbox leaves no field of an answer empty, so whether one would be signed stays unshown.
      const sign = {
        algorithm,
        sort,
        hexCase,
        keySuffix,
        failures,
        emptyFields: { requests: emptyFields.requests },
      }
      assert.deepEqual([outcome.dialect.body, outcome.dialect.sign], [dialect.body, sign])
    } finally {
      await sandbox.stop()
    }
  }
  assert.equal(number, 3 * 2 ** 6)
})
