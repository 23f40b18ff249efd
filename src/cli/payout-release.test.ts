import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { accepted, testEnvironment } from '../../test/ledger.ts'
import { readConfig } from '../config/config.ts'
import { command } from '../payout/command.fixture.ts'
import { paise } from '../payout/money.ts'
import { payoutd } from './cli.fixture.ts'
import { withLedger } from './with-ledger.ts'

/** An environment whose ledger holds `again-1` and `again-2` of the batch `twice` as duplicates. */
async function withHeld(t: TestContext): Promise<NodeJS.ProcessEnv> {
  const env = testEnvironment(await freshDatabase(t))
  const config = readConfig(env)
  const both = (name: string, batchId: string) => [
    command(`${name}-1`, { batchId }),
    command(`${name}-2`, { batchId, amount: paise(100n) }),
  ]
  await withLedger(config, async (ledger) => {
    await accepted(ledger, config, both('salary', 'november'), { holdDuplicates: true })
    await accepted(ledger, config, both('again', 'twice'), { holdDuplicates: true })
  })
  return env
}

const BY = ['--by', 'asha', '--reason', 'two salaries']

test('a release tells what it would do, does it, and at last that nothing waits any more', async (t) => {
  const env = await withHeld(t)
  const release = ['payout', 'release', 'again-1', ...BY]
  const dry = await payoutd([...release, '--dry-run'], env)
  assert.match(
    dry.stdout,
    /^payout again-1 would be queued; it was held because payout salary-1 of batch november/,
  )
  const unasked = await payoutd(release, env)
  assert.deepEqual([unasked.code, unasked.stderr], [1, 'there is no terminal to ask on: give --yes\n'])
  const done = await payoutd([...release, '--yes', '--json'], env)
  assert.equal(done.code, 0)
  assert.deepEqual(
    JSON.parse(done.stdout).payouts.map(({ payoutId, kind }: Record<string, string>) => [payoutId, kind]),
    [['again-1', 'queued']],
  )
  const again = await payoutd([...release, '--yes'], env)
  assert.deepEqual([again.code, again.stdout], [1, 'payout again-1 stays queued: it waits for no release\n'])
})

test('a batch is released as a whole, once', async (t) => {
  const env = await withHeld(t)
  const release = ['payout', 'release', '--batch', 'twice', ...BY, '--yes']
  const done = await payoutd(release, env)
  assert.deepEqual([done.code, done.stdout.match(/is queued/g)?.length], [0, 2])
  const { stdout } = await payoutd(['payout', 'list', '--state', 'held'], env)
  assert.equal(stdout, 'none\n')
  const again = await payoutd(release, env)
  assert.deepEqual(
    [again.code, again.stderr],
    [1, 'no payout of batch twice of merchant acme waits for a release\n'],
  )
})

test('without an id or a batch, or with both, nothing is released', async (t) => {
  const env = await withHeld(t)
  for (const which of [[], ['again-1', '--batch', 'twice']]) {
    const { code, stderr } = await payoutd(['payout', 'release', ...which, ...BY, '--yes'], env)
    assert.deepEqual([code, stderr], [1, 'which payouts? give their ids, or --batch\n'])
  }
})
