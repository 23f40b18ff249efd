import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { accepted, registered, testEnvironment } from '../../../test/ledger.ts'
import { readConfig } from '../../config/config.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { proveKeys } from '../../operators/key-proofs.ts'
import { payoutd } from '../cli.fixture.ts'
import { withLedger } from '../with-ledger.ts'

const BY = ['--by', 'asha', '--reason', 'a new year']

test('a rotation shows what it would do, does it, and lets payoutd start without the former key', async (t) => {
  const former = testEnvironment(await freshDatabase(t))
  const config = readConfig(former)
  await registered(config)
  await withLedger(config, async (ledger) => {
    await proveKeys(ledger.db, { sealing: config.sealing, fingerprint: config.fingerprintKey })
    await accepted(ledger, config, [command('p-1'), command('p-2')])
  })
  const second = `2:${randomBytes(32).toString('base64')}`
  const both = { ...former, ENCRYPTION_KEYS: `${former.ENCRYPTION_KEYS},${second}` }
  const without = { ...former, ENCRYPTION_KEYS: second }

  const dry = await payoutd(['keys', 'rotate', ...BY, '--dry-run'], both)
  assert.deepEqual(
    [dry.code, dry.stdout],
    [
      0,
      'first restart every running payoutd with key 2: a process without it holds the payouts that it cannot decrypt\n' +
        'would encrypt again with key 2: everything under key 1 (2); nothing was done\n',
    ],
  )
  const unasked = await payoutd(['keys', 'rotate', ...BY], both)
  assert.deepEqual([unasked.code, unasked.stderr], [1, 'there is no terminal to ask on: give --yes\n'])
  const done = await payoutd(['keys', 'rotate', ...BY, '--rate', '500/s', '--yes'], both)
  assert.equal(done.code, 0, done.stderr)
  assert.match(
    done.stdout,
    /^encrypted 2 payouts again with key 2\nnothing in the database is encrypted with key 1; /,
  )

  const early = await payoutd(['keys', 'rotate', ...BY, '--yes'], without)
  assert.equal(early.code, 1)
  assert.match(early.stderr, /^encryption key 1 was used, but is not in ENCRYPTION_KEYS/)
  const retired = await payoutd(['keys', 'rotate', ...BY, '--retire', '--yes', '--json'], both)
  const { resealed, unused, retired: gone, sealed } = JSON.parse(retired.stdout)
  assert.deepEqual([retired.code, resealed, unused, gone, sealed], [0, 0, [1], true, { 2: 2 }])
  assert.equal((await payoutd(['keys', 'rotate', ...BY, '--yes'], without)).code, 0)
  assert.match((await payoutd(['payout', 'show', 'p-1'], without)).stdout, /to account ••••6789/)

  const acts = await payoutd(['acts', 'list', '--json'], without)
  const all = acts.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    all.reverse().map(({ command, before, after }) => [command, before, after]),
    [
      ['keys rotate', { 1: 2 }, null],
      [
        'keys rotate',
        { 1: 2 },
        { resealed: 2, others: 0, interrupted: false, unopened: {}, sealed: { 2: 2 } },
      ],
      ['keys rotate', { 2: 2 }, null],
      [
        'keys rotate',
        { 2: 2 },
        { resealed: 0, others: 0, interrupted: false, unopened: {}, sealed: { 2: 2 } },
      ],
      ['keys retire', { known: true }, { known: false }],
      ['keys rotate', { 2: 2 }, null],
      [
        'keys rotate',
        { 2: 2 },
        { resealed: 0, others: 0, interrupted: false, unopened: {}, sealed: { 2: 2 } },
      ],
    ],
  )
})
