import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { registered, testEnvironment } from '../../../test/ledger.ts'
import { readConfig } from '../../config/config.ts'
import { topicNames } from '../../messages/topics.ts'
import { makeTopic, unique } from '../../platform/kafka/kafka.fixture.ts'
import { payoutd } from '../cli.fixture.ts'

/** Amounts in the form that JSON has them. */
const NOTHING = { count: 0, amount: '0' }

test("a merchant is paused, shown as paused, and resumed, each in a person's name", async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  const before = await payoutd(['merchants'], env)
  assert.match(before.stdout, /^acme has sent nothing: /)

  const pause = ['pause', 'acme', '--by', 'asha', '--reason', 'account 50100123456789 is wrong']
  assert.match(
    (await payoutd([...pause, '--dry-run'], env)).stdout,
    /^acme would be paused: .*\n.*; nothing was done\n$/,
  )
  assert.equal((await payoutd(pause, env)).stderr, 'there is no terminal to ask on: give --yes\n')
  assert.match((await payoutd(['merchants'], env)).stdout, /^acme has sent nothing: /)
  const paused = await payoutd([...pause, '--yes'], env)
  assert.equal(paused.code, 0)
  assert.match(
    paused.stdout,
    /^acme is paused: payoutd sends no more of its payouts\nqueued now: 0, in flight now: 0\n/,
  )
  const again = await payoutd([...pause, '--yes'], env)
  assert.equal(again.code, 0)
  assert.match(again.stdout, /^acme is already paused, by asha since .*: account ••••6789 is wrong\n/)

  const other = ['pause', 'acme', '--by', 'meera', '--reason', 'fraud', '--yes']
  assert.equal((await payoutd(other, env)).code, 1)

  const listed = await payoutd(['merchants'], env)
  assert.match(listed.stdout, /acme +paused +not known/)
  const [line, ...others] = (await payoutd(['merchants', '--json'], env)).stdout.split('\n')
  const { merchantId, paused: pausing, traffic } = JSON.parse(line ?? '')
  assert.deepEqual([merchantId, pausing.pausedBy, traffic.queued, others], ['acme', 'asha', NOTHING, ['']])
  const elsewhere = await payoutd(['merchants'], { ...env, MERCHANT_ID: 'bolt' })
  assert.match(
    elsewhere.stdout,
    /\nacme is not in the settings of this command: a payoutd with the same settings /,
  )
  const resume = ['resume', 'acme', '--by', 'ravi', '--reason', 'a good account']
  assert.match((await payoutd([...resume, '--dry-run'], env)).stdout, /^acme would be resumed by ravi; /)
  const resumed = await payoutd([...resume, '--yes'], env)
  assert.match(resumed.stdout, /^acme is resumed by ravi; asha had paused it at /)
  const acts = await payoutd(['acts', 'list'], env)
  assert.match(
    acts.stdout,
    /^ {2}.*Z {2}resume: acme\n {4}by ravi \(.+ at .+, database role .+\): a good account\n {2}.* pause: acme\n {4}by asha .*: account ••••6789 is wrong\n$/,
  )
})

test("other gateway settings come into force in a person's name, once, after a preview, and the record has no key", async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  const adopt = (env: NodeJS.ProcessEnv, ...how: string[]) =>
    payoutd(['merchant', 'adopt', 'acme', '--by', 'asha', '--reason', 'we change the gateway', ...how], env)
  const first = await adopt(env, '--yes')
  assert.deepEqual([first.code, first.stderr], [0, ''])
  assert.match(first.stdout, /mchId 1000100 at http:\/\/127\.0\.0\.1:9, .*\(none were in force\)/)

  const key = randomBytes(12).toString('hex')
  const changed = { ...env, GATEWAY_MCH_ID: '77', GATEWAY_KEY: key }
  const dry = await adopt(changed, '--dry-run')
  assert.match(
    dry.stdout,
    /its mchId here is 77, but 1000100 is in force; its key \(by its fingerprint\) here is /,
  )
  const unsure = await adopt(changed)
  assert.equal(unsure.code, 1)
  assert.match((await payoutd(['merchants'], env)).stdout, /mchId 1000100 at 127\.0\.0\.1:9\n/)

  assert.equal((await adopt(changed, '--yes')).code, 0)
  const again = await adopt(changed, '--yes')
  assert.match(again.stdout, /^these gateway settings of acme are already in force/)
  const listed = await payoutd(['merchants', '--json'], changed)
  assert.equal(JSON.parse(listed.stdout).account.mchId, '77')
  const acts = await payoutd(['acts', 'list', '--json'], changed)
  assert.equal(acts.stdout.match(/merchant adopt/g)?.length, 2)
  for (const { stdout } of [first, dry, again, listed, acts]) {
    for (const secret of [key, env.GATEWAY_KEY as string]) assert.ok(!stdout.includes(secret))
  }
})

test("under another merchant id nothing starts at a merchant's account and no payroll is published, and adopt says whose it is", async (t) => {
  const env = testEnvironment(await freshDatabase(t), { TOPIC_PREFIX: `${unique('renamed')}.` })
  const config = readConfig(env)
  await registered(config)
  await makeTopic(topicNames(config.topicPrefix).commands)
  const folder = mkdtempSync(path.join(tmpdir(), 'renamed-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const payroll = path.join(folder, 'payroll.csv')
  writeFileSync(
    payroll,
    'reference,account_name,account_no,ifsc,amount\n1,Asha,5010012345678,HDFC0001234,500\n',
  )
  const account = { baseUrl: env.GATEWAY_BASE_URL, mchId: env.GATEWAY_MCH_ID, key: 'env:GATEWAY_KEY' }
  const MERCHANTS_FILE = path.join(folder, 'merchants.json')
  const merchants = ['acme', 'globex'].map((id) => ({ id, ...account, dialect: 'sandbox' }))
  writeFileSync(MERCHANTS_FILE, JSON.stringify({ merchants }))
  const who = ['--by', 'asha', '--reason', 'one company', '--yes']
  const lost = { ...env, MERCHANT_ID: undefined }
  const none = { GATEWAY_BASE_URL: undefined, GATEWAY_MCH_ID: undefined, GATEWAY_DIALECT: undefined }
  const several = { ...lost, ...none, MERCHANTS_FILE }
  const ingest = ['ingest', payroll, '--batch', 'nov', ...who]
  for (const command of [
    ['serve', '--roles', 'dispatch'],
    ['recover', ...who, '--merchant', 'globex'],
    [...ingest, '--merchant', 'globex'],
  ]) {
    const { code, stderr } = await payoutd(command, several)
    assert.equal(code, 1, stderr)
    assert.match(
      stderr,
      /merchant globex: .* is in the settings also that of merchant acme \(.* Nothing was /,
    )
    assert.equal((await payoutd(['merchants', '--json'], several)).stdout, '', 'nothing is in force')
  }
  assert.equal((await payoutd(['merchant', 'adopt', 'acme', ...who], env)).code, 0)
  for (const [command, given, name] of [
    [['serve', '--roles', 'dispatch'], lost, 'default'],
    [['serve', '--roles', 'dispatch'], several, 'globex'],
    [['recover', ...who], lost, 'default'],
    [ingest, lost, 'default'],
    [[...ingest, '--merchant', 'globex'], several, 'globex'],
  ] as const) {
    const { code, stdout, stderr } = await payoutd(command, given)
    assert.deepEqual([code, stdout], [1, ''], `${command}: ${stderr}`)
    const what = `^merchant ${name}: its gateway account, mchId 1000100 at http://127\\.0\\.0\\.1:9, is or was that of merchant acme \\(`
    assert.match(
      stderr,
      new RegExp(`${what}.* Nothing was (started|published)\\. .* payoutd merchant adopt `),
    )
  }

  const adopted = await payoutd(['merchant', 'adopt', 'default', ...who], lost)
  assert.equal(adopted.code, 0)
  assert.match(
    adopted.stdout,
    /; this account, or a former one of these settings, is or was also that of merchant acme: /,
  )
})

test('an unknown merchant is refused, and the error lists the known ones', async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  const { code, stderr } = await payoutd(['pause', 'amce', '--by', 'asha', '--reason', 'typing'], env)
  const refused = [1, 'there is no merchant amce; the settings have acme\n']
  assert.deepEqual([code, stderr], refused)
  for (const command of ['payout list', 'payout review', 'anomaly list', 'payin show p']) {
    const asked = await payoutd([...command.split(' '), '--merchant', 'amce'], env)
    assert.deepEqual([asked.code, asked.stderr], refused, command)
  }
})

test('a merchant that was removed from the settings can still be shown', async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  assert.equal(
    (await payoutd(['pause', 'acme', '--by', 'asha', '--reason', 'leaving', '--yes'], env)).code,
    0,
  )
  const later = { ...env, MERCHANT_ID: 'bolt' }
  const { code, stdout } = await payoutd(['payout', 'list', '--merchant', 'acme'], later)
  assert.deepEqual([code, stdout], [0, 'none\n'])
})
