import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../../../test/database.ts'
import { accepted, registered, testEnvironment } from '../../../../test/ledger.ts'
import { readConfig } from '../../../config/config.ts'
import { command } from '../../../domain/commands/command.fixture.ts'
import { paise } from '../../../domain/money.ts'
import { payoutd, payoutdAlone } from '../../cli.fixture.ts'
import { withLedger } from '../../with-ledger.ts'

/** An environment whose ledger holds `again-1` and `again-2` of the batch `twice` as duplicates. */
async function withHeld(t: TestContext): Promise<NodeJS.ProcessEnv> {
  const env = testEnvironment(await freshDatabase(t))
  const config = readConfig(env)
  const both = (name: string, batchId: string) => [
    command(`${name}-1`, { batchId }),
    command(`${name}-2`, { batchId, amount: paise(100n) }),
  ]
  await registered(config)
  await withLedger(config, async (ledger) => {
    await accepted(ledger, config, both('salary', 'november'), { holdDuplicates: true })
    await accepted(ledger, config, both('again', 'twice'), { holdDuplicates: true })
  })
  return env
}

const BY = ['--by', 'asha', '--reason', 'two salaries']

test('a release shows what it would do, does it, and finally reports that nothing waits any more', async (t) => {
  const env = await withHeld(t)
  const release = ['payout', 'release', 'again-1', ...BY]
  const dry = await payoutd([...release, '--dry-run'], env)
  assert.match(
    dry.stdout,
    /^payout again-1 would be queued; it was held because payout salary-1 of batch november \(queued\) of .*\n {2}₹50,000\.00 to account ••••6789, IFSC HDFC0001234; batch twice, row 1; nothing was done\n$/,
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
  assert.equal(again.code, 1)
  assert.match(again.stdout, /^payout again-1 stays queued: it was released at .*Z, by asha: two salaries\n/)
})

test('a batch is released as a whole, once', async (t) => {
  const env = await withHeld(t)
  const release = ['payout', 'release', '--batch', 'twice', ...BY, '--yes']
  const done = await payoutd(release, env)
  assert.deepEqual([done.code, done.stdout.match(/is queued/g)?.length], [0, 2])
  const { stdout } = await payoutd(['payout', 'list', '--state', 'held'], env)
  assert.equal(stdout, 'none\n')
  const again = await payoutd(release, env)
  assert.deepEqual([again.code, again.stderr], [1, 'merchant acme has no such payout in batch twice\n'])
})

test('only payouts of a batch that are held for a reason are released', async (t) => {
  const env = await withHeld(t)
  const release = ['payout', 'release', '--batch', 'twice', ...BY, '--yes']
  const none = await payoutd([...release, '--held-for', 'beneficiary-changed'], env)
  assert.deepEqual([none.code, none.stderr], [1, 'merchant acme has no such payout in batch twice\n'])
  const done = await payoutd([...release, '--held-for', 'beneficiary-changed', 'duplicate'], env)
  assert.match(done.stdout, /\n2 payouts, ₹50,001\.00 together, are released\n$/)
})

test('the operator must say which payouts are meant, and in one way only', async (t) => {
  const env = await withHeld(t)
  for (const [which, why] of [
    [[], 'which payouts? give their ids, or --batch\n'],
    [['again-1', '--batch', 'twice'], 'give ids or --batch, not both\n'],
    [['again-1', '--held-for', 'duplicate'], '--held-for needs --batch\n'],
  ] as const) {
    const { code, stderr } = await payoutd(['payout', 'release', ...which, ...BY, '--yes'], env)
    assert.deepEqual([code, stderr], [1, why])
  }
})

/** Makes a process take its pipes for a terminal. */
const TERMINAL =
  '--import=data:text/javascript,process.stdin.isTTY=true;process.stderr.isTTY=true;process.stderr.columns=80'

test('Ctrl-C and Ctrl-D at the question end the command, and nothing was done', async (t) => {
  const env = await withHeld(t)
  for (const key of ['\x03', '\x04']) {
    const asked = { ...env, NODE_OPTIONS: TERMINAL }
    const { code, stderr } = await payoutdAlone(['payout', 'release', 'again-1', ...BY], asked, key)
    assert.equal(code, 130)
    assert.match(stderr, /Go on\? \[y\/N\] .*\nnothing was done\n$/)
  }
  const { stdout } = await payoutd(['payout', 'list', '--state', 'held', '--json'], env)
  assert.match(stdout, /"payoutId":"again-1"/)
})

test('with --yes a payout is released only if what else pays the same is named with --besides', async (t) => {
  const env = await withHeld(t)
  await withLedger(readConfig(env), (ledger) =>
    accepted(ledger, readConfig(env), [command('third-1', { batchId: 'thrice' })], { holdDuplicates: true }),
  )
  const release = (...which: string[]) => payoutd(['payout', 'release', ...which, ...BY, '--yes'], env)
  const both = await release('again-1', 'third-1')
  assert.equal(both.code, 1)
  assert.equal(
    both.stdout.match(/stays held: payout \S+ of batch \S+ \(held \(duplicate\)\) pays/g)?.length,
    2,
  )
  assert.equal((await release('again-1')).code, 0)
  assert.equal((await release('third-1')).code, 1)
  const shown = await payoutd(['payout', 'show', 'third-1'], env)
  const title = 'other payouts of the same amount to the same beneficiary'
  assert.match(
    shown.stdout,
    new RegExp(`\n${title}\n  payout again-1 of batch twice \\(queued\\) and payout salary-1 `),
  )
  const inJson = await payoutd(['payout', 'show', 'third-1', '--json'], env)
  const { otherPayments } = JSON.parse(inJson.stdout)
  assert.deepEqual(
    otherPayments.found.map(({ payoutId }: { payoutId: string }) => payoutId),
    ['again-1', 'salary-1'],
  )
  const named = await release('third-1', '--besides', 'again-1')
  assert.equal(named.code, 0)
  assert.match(
    named.stdout,
    /is queued; it was held because .*; by now payout again-1 of batch twice \(queued\) pays/,
  )
})

test('the JSON of a release names the first of many others that pay the same, and counts the rest', async (t) => {
  const env = await withHeld(t)
  const others = Array.from({ length: 24 }, (_, index) => command(`other-${index}`, { batchId: `b${index}` }))
  await withLedger(readConfig(env), (ledger) =>
    accepted(ledger, readConfig(env), others, { holdDuplicates: true }),
  )
  const { stdout } = await payoutd(['payout', 'release', 'again-1', ...BY, '--dry-run', '--json'], env)
  const { found, more, thereMayBeMore } = JSON.parse(stdout).payouts[0].otherPayments
  assert.deepEqual([found.length, more, thereMayBeMore], [20, 4, false])
  const shown = await payoutd(['payout', 'show', 'again-1', '--json'], env)
  assert.equal(JSON.parse(shown.stdout).otherPayments.found.length, 25)
})
