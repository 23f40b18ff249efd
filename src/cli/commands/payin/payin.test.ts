import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { startSandbox } from '../../../../devkit/sandbox/sandbox.ts'
import { freshDatabase } from '../../../../test/database.ts'
import { registered, testEnvironment } from '../../../../test/ledger.ts'
import { readConfig } from '../../../config/config.ts'
import { connectDatabase, sql } from '../../../platform/postgres/postgres.ts'
import { payoutd } from '../../cli.fixture.ts'

/** An environment with a merchant at a sandbox of its own. */
async function atSandbox(t: TestContext): Promise<NodeJS.ProcessEnv> {
  const env = testEnvironment(await freshDatabase(t))
  await registered(readConfig(env))
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  const merchants = [{ mchId: '1000100', key: env.GATEWAY_KEY as string }]
  const sandbox = await startSandbox({ state: path.join(folder, 'sandbox.sqlite'), merchants })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  return { ...env, GATEWAY_BASE_URL: sandbox.url }
}

const WHO = ['--by', 'asha', '--reason', 'invoice 7']
const CREATE = ['payin', 'create', '--amount', '50000', '--idempotency-key', 'order-7', ...WHO]

test('a payin is created, repeated and shown, to people and to programs', async (t) => {
  const env = await atSandbox(t)
  const made = await payoutd([...CREATE, '--qr'], env)
  assert.deepEqual([made.code, made.stdout.match(/state +(\w+)/)?.[1]], [0, 'open'])
  assert.match(made.stdout, /^payin C[A-Z2-7]{29} of acme\n +requested +₹500.00\n/)
  assert.match(made.stdout, /payUrl +http/)
  assert.match(made.stderr, /[▀▄█]{10}/)

  const repeated = await payoutd([...CREATE, '--json', '--qr'], env)
  const payin = JSON.parse(repeated.stdout)
  assert.deepEqual([repeated.code, payin.state, payin.amount], [0, 'open', '50000'])
  const shown = await payoutd(['payin', 'show', payin.payinId], env)
  assert.match(
    shown.stdout,
    /history\n.* v1 {2}\(new\) → creating {2}by COMMAND\n.* v2 {2}creating → open {2}by CREATE/,
  )
  const { history } = JSON.parse((await payoutd(['payin', 'show', payin.payinId, '--json'], env)).stdout)
  assert.equal(history.length, 2)
})

test('a refusal prints one line per reason, and the exit code is 1', async (t) => {
  const env = await atSandbox(t)
  const wrong = await payoutd(
    ['payin', 'create', ...WHO, '--amount', '50.5', '--idempotency-key', 'k', '--remark', 'a&b'],
    env,
  )
  assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
  assert.match(wrong.stderr, /^amount must be a whole number of paise.*\nremark must not hold "&".*\n$/)
  assert.equal((await payoutd(CREATE, env)).code, 0)
  const other = await payoutd([...CREATE.slice(0, 3), '50100', ...CREATE.slice(4)], env)
  assert.deepEqual([other.code, other.stdout], [1, ''])
  assert.match(other.stderr, /^this idempotency key belongs to another request/)
  const nobody = await payoutd(['payin', 'show', 'CNOBODY'], env)
  assert.deepEqual([nobody.code, nobody.stderr], [1, 'merchant acme has no payin CNOBODY\n'])
})

test("a recovery shows the gateway's answer, and payoutd records who asked for the payin and for the recovery", async (t) => {
  const env = await atSandbox(t)
  const { payinId, checkout } = JSON.parse((await payoutd([...CREATE, '--json'], env)).stdout)
  const response = await fetch(`${checkout.payUrl}/pay-untold`, {
    method: 'POST',
    headers: { accept: 'application/json' },
  })
  const { untoldUtrs } = (await response.json()) as { untoldUtrs: string[] }
  const recover = (utr: string) => payoutd(['payin', 'recover', payinId, '--utr', utr, ...WHO], env)
  const wrong = await recover('632600000000')
  assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
  assert.match(wrong.stderr, /^the gateway says UTR_NOT_FOUND /)
  const right = await recover(untoldUtrs[0] as string)
  assert.deepEqual([right.code, right.stdout.split('\n')[0]?.slice(0, 9)], [0, 'submitted'])

  await payoutd(CREATE, env)
  const acts = await payoutd(['acts', 'list', '--json'], env)
  assert.deepEqual(
    acts.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .map(({ command, by, reason, subjects, before, after }) => [
        command,
        by,
        reason,
        subjects,
        before,
        after,
      ])
      .filter(([, by]) => by === 'asha')
      .reverse(),
    [
      ['payin create', null, { state: 'creating', amount: '50000', currency: 'INR' }],
      ['payin recover', { state: 'open' }, { utr: '632600000000' }],
      ['payin recover', { state: 'open' }, { utr: untoldUtrs[0] }],
    ].map(([command, ...change]) => [command, 'asha', 'invoice 7', [payinId], ...change]),
  )
})

test('if the gateway is away, the payin failed, and the exit code is 1', async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  const { code, stdout } = await payoutd(CREATE, env)
  assert.equal(code, 1)
  assert.match(stdout, /state +failed \(connection-refused\)/)
})

const toReview = sql<object>`update payins set state = 'review', reason = 'not-found'`

test('payins in review are listed with their evidence, the oldest first', async (t) => {
  const env = await atSandbox(t)
  const review = async (...options: string[]) => payoutd(['payin', 'review', ...options], env)
  assert.equal((await review()).stdout, 'no payin is in review\n')
  assert.equal((await payoutd(CREATE, env)).code, 0)
  assert.equal((await payoutd(CREATE.with(5, 'order-8'), env)).code, 0)
  const db = connectDatabase({ url: env.DATABASE_URL ?? '', connections: 1, applicationName: 'test' })
  await db.run(toReview, {}).finally(() => db.close())
  const first = await review('--limit', '1')
  assert.match(first.stdout, /^payin C\S+ of acme\n(.*\n)* +state +review \(not-found\).*\n(.*\n)*history\n/)
  assert.equal(first.stderr, 'there are more; --limit 1 shows only the first\n')
  assert.match(
    first.stdout,
    /\n {2}decide with: payoutd payin resolve C\S+ --paid --utr <UTR>, or --failed\n$/,
  )
  const lines = (await review('--json')).stdout.trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).state),
    ['review', 'review'],
  )
})

test('a decision about a payin in review is previewed, carried out once, and recorded', async (t) => {
  const env = await atSandbox(t)
  const { payinId } = JSON.parse((await payoutd([...CREATE, '--json'], env)).stdout)
  const resolve = (...options: string[]) => payoutd(['payin', 'resolve', payinId, ...options, ...WHO], env)
  const early = await resolve('--failed', '--yes')
  assert.deepEqual(
    [early.code, early.stdout.split('\n').at(-2)],
    [1, `payin ${payinId} is open, and you can resolve only a payin in review`],
  )
  const db = connectDatabase({ url: env.DATABASE_URL ?? '', connections: 1, applicationName: 'test' })
  await db.run(toReview, {}).finally(() => db.close())

  for (const [options, wrong] of [
    [[], /^which decision\?/],
    [['--paid'], /^--paid needs --utr/],
    [['--failed', '--utr', '6'], /^--utr needs --paid/],
    [['--paid', '--utr', 'a b'], /1 to 30 letters/],
    [['--failed'], /there is no terminal to ask on: give --yes/],
  ] as const) {
    const { code, stderr } = await resolve(...options)
    assert.notEqual(code, 0)
    assert.match(stderr, wrong)
  }
  const dry = await resolve('--paid', '--utr', '632611200007', '--dry-run')
  assert.match(
    dry.stdout,
    /^payin C\S+ of acme\n(.*\n)*payin C\S+ would be paid, with UTR 632611200007: payoutd publishes this, and you cannot undo it; nothing was done\n$/,
  )
  const done = await resolve('--paid', '--utr', '632611200007', '--yes')
  assert.deepEqual([done.code, done.stdout], [0, `payin ${payinId} is paid, with UTR 632611200007\n`])
  assert.equal((await resolve('--failed', '--yes')).code, 1)

  const shown = await payoutd(['payin', 'show', payinId], env)
  assert.match(shown.stdout, /review → paid {2}by OPERATOR\n +asha: invoice 7 \(paid, UTR 632611200007\)\n/)
  const acts = (await payoutd(['acts', 'list', '--json'], env)).stdout.trimEnd().split('\n')
  const [{ command, by, reason, subjects, before, after }] = acts.map((line) => JSON.parse(line))
  assert.deepEqual([command, by, reason, subjects], ['payin resolve', 'asha', 'invoice 7', [payinId]])
  assert.deepEqual([before.state, after.state, after.utr], ['review', 'paid', '632611200007'])
})
