import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { accepted, command, testLedger } from '../../../test/ledger.ts'
import { sealingKey } from '../../platform/seal.ts'
import { judgeKeys, type Keys } from './keys.ts'
import { sealedSample } from './sql/sealed-sample.ts'

const newKey = () => sealingKey(randomBytes(32))

/** Two payouts: the first sealed with key 1, the second, after a rotation, with key 2. */
async function rotated(t: Parameters<typeof testLedger>[0]) {
  const { ledger, config } = await testLedger(t)
  await accepted(ledger, config, [command('before')])
  const first = config.sealing.keys.get(1)
  assert.ok(first)
  const sealing = {
    current: 2,
    keys: new Map([
      [1, first],
      [2, newKey()],
    ]),
  }
  await accepted(ledger, { ...config, sealing }, [command('after', { vpa: 'asha.rao@okaxis', ifsc: null })])
  const keys: Keys = { sealing, fingerprint: config.fingerprintKey }
  return { samples: await ledger.db.run(sealedSample, {}), keys, first }
}

test('one payout for each key id in use is opened', async (t) => {
  const { samples, keys } = await rotated(t)
  assert.deepEqual(
    samples.map(({ keyId, payoutId }) => [keyId, payoutId]),
    [
      [1, 'before'],
      [2, 'after'],
    ],
  )
  assert.deepEqual(judgeKeys(samples, keys).state, 'good')
})

test('a key that was dropped while payouts are sealed with it is missed', async (t) => {
  const { samples, keys } = await rotated(t)
  const second = keys.sealing.keys.get(2)
  assert.ok(second)
  const finding = judgeKeys(samples, { ...keys, sealing: { current: 2, keys: new Map([[2, second]]) } })
  assert.match(finding.what, /sealed with key 1, which is not in ENCRYPTION_KEYS/)
})

test('another key under the same id is noticed', async (t) => {
  const { samples, keys, first } = await rotated(t)
  const sealing = {
    current: 2,
    keys: new Map([
      [1, first],
      [2, newKey()],
    ]),
  }
  assert.match(judgeKeys(samples, { ...keys, sealing }).what, /does not open what was sealed with key 2/)
})

test('another fingerprint key is noticed before repeats look like other content', async (t) => {
  const { samples, keys } = await rotated(t)
  assert.match(judgeKeys(samples, { ...keys, fingerprint: newKey() }).what, /^FINGERPRINT_KEY is not the one/)
})

test('an empty ledger has nothing against any key', async (t) => {
  const { ledger, config } = await testLedger(t)
  const samples = await ledger.db.run(sealedSample, {})
  const finding = judgeKeys(samples, { sealing: config.sealing, fingerprint: config.fingerprintKey })
  assert.equal(finding.state, 'good')
})
