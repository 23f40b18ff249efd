import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { startPayoutd } from '../src/app/start.ts'
import { payoutd } from '../src/cli/cli.fixture.ts'
import { readConfig } from '../src/config/config.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { topicNames } from '../src/messages/topics.ts'
import { openTransaction } from '../src/platform/kafka/kafka.fixture.ts'
import { createPublisher } from '../src/platform/kafka/producer.ts'
import { silentLogger } from '../src/platform/log.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { besideSandbox } from './reconcile.ts'

/** A dialect whose grace is one second. */
const QUICK = { GATEWAY_DIALECT: path.join(import.meta.dirname, 'quick-dialect.json') }
const WHO = ['--by', 'asha', '--reason', 'disk lost']

const formerAccount = sql<object>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', 'former', 'gone', 'https://former.example', '7', 'f', 'default')`
const noFormerAccount = sql<object>`delete from gateway_settings where settings_hash = 'former'`

/** A merchant that has left the settings since its last payment. */
const away = sql<object>`insert into merchants (merchant_id, settings_hash) values ('bolt', 'h')`
const fenced = sql<object, { merchantId: string; by: string }>`
  select merchant_id, recovering_by as by from merchants where recovering_since is not null`

const kept = sql<object, { payoutId: string; version: number; state: string; at: number }>`
  select payout_id, version, state, fee, utr, at from published_messages where merchant_id = 'bolt'`

test('a recovery shows what it would do, does it, shows what it found, and may be repeated', async (t) => {
  const { env: settings, send, ended, orderNo, db } = await besideSandbox(t)
  const env = { ...settings, ...QUICK }
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  await send('p-1')
  await ended(orderNo('p-1'))

  const dry = await payoutd(['recover', ...WHO, '--dry-run'], env)
  assert.equal(dry.code, 0)
  assert.match(
    dry.stdout,
    /^payoutd would fence acme .*, now 1; payoutd serve would first have to read 0 .*; nothing was done\n$/,
  )
  assert.doesNotMatch((await payoutd(['merchants'], env)).stdout, /recovering/)
  await db.run(formerAccount, {})
  const lacking = await payoutd(['recover', ...WHO, '--dry-run'], env)
  assert.match(lacking.stdout, /lack mchId 7 at former\.example.*wait for a person: add it to formerAccounts/)
  await db.run(noFormerAccount, {})

  const done = await payoutd(['recover', ...WHO, '--yes', '--json'], env)
  assert.equal(done.code, 0, done.stderr)
  assert.match(
    done.stderr,
    /acme: waits until 20[^\n]* before it asks the gateway: [^\n]*\nacme: the gateway has answered about 0 of 1 payouts\n/,
  )
  assert.match(
    done.stderr,
    /fenced; payoutd sends nothing for now\npayoutd cannot read back what only the database contained.*pause merchants.*settings.*batches.*anomalies.*callbacks.*OPERATOR.*acts\nlist/s,
  )
  assert.deepEqual(JSON.parse(done.stdout), {
    merchants: [
      {
        ...{ merchantId: 'acme', ending: 'all-asked', isSilent: false, kind: 'recovered' },
        findings: [{ found: 'paid', count: 1 }],
      },
    ],
    gone: [],
    others: [],
    away: [],
    done: true,
  })
  assert.doesNotMatch((await payoutd(['acts', 'list'], env)).stdout, /by payoutd /)
  const again = await payoutd(['recover', ...WHO, '--yes', '--merchant', 'acme'], env)
  assert.equal(again.code, 0, again.stderr)
  assert.match(again.stdout, /^acme: payoutd queried all 0 payouts .* sending continues\n/)
})

test('a gateway that does not answer leaves the merchant fenced, with exit code 1; an unknown merchant is named', async (t) => {
  const { env: settings, send, ended, orderNo } = await besideSandbox(t)
  const env = { ...settings, ...QUICK }
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  await send('p-1')
  await ended(orderNo('p-1'))
  const faults = `${settings.GATEWAY_BASE_URL}/_sandbox/faults`
  const body = JSON.stringify({ fault: '500', operation: 'queryPayout', percent: 100 })
  const headers = { 'content-type': 'application/json' }
  assert.equal((await fetch(faults, { method: 'POST', headers, body })).status, 201)
  const { code, stdout } = await payoutd(['recover', ...WHO, '--yes'], env)
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^acme stays fenced: about some payouts it had no answer to rely on, see payoutd doctor; run payoutd recover --merchant acme to continue\n {2}1 not/,
  )
  assert.match((await payoutd(['merchants'], env)).stdout, /acme +recovering/)
  await fetch(faults, { method: 'DELETE' })
  assert.equal((await payoutd(['recover', ...WHO, '--yes'], env)).code, 0)

  const stranger = await payoutd(['recover', ...WHO, '--merchant', 'bolt'], env)
  assert.deepEqual(
    [stranger.code, stranger.stderr],
    [1, 'there is no merchant bolt; the settings have acme\n'],
  )
})

/** Makes a process take its pipes for a terminal. */
const TERMINAL = '--import=data:text/javascript,process.stdin.isTTY=true'

const payouts = sql<object>`select from payouts`
const setBack = sql<object>`
  truncate payouts, payout_commands, payments, history, outbox, attempts, intake_offsets`

test('the first run recovers what the database lost, which payoutd serve reads again meanwhile, and what another process stores while the recovery waits for the person or for the grace', async (t) => {
  const { env: settings, db, client, ended, orderNo, codec } = await besideSandbox(t)
  const own = `q${randomBytes(4).toString('hex')}.`
  const env = { ...settings, ...QUICK, TOPIC_PREFIX: own, KAFKA_GROUP: own }
  const elsewhere = await payoutd(['migrate', ...WHO], env)
  assert.deepEqual([elsewhere.code, elsewhere.stdout], [1, ''])
  assert.match(
    elsewhere.stderr,
    /the topics of this ledger begin with .* run payoutd migrate --move-topics$/m,
  )
  assert.equal((await payoutd(['migrate', '--move-topics', ...WHO], env)).code, 0)
  const config = readConfig(env)
  const publisher = createPublisher('test', config.kafka, silentLogger)
  t.after(() => publisher.close())
  const sentElsewhere = async (payoutId: string) => {
    const topic = topicNames(own).commands
    const value = codec.encoder(
      topicNames(settings.TOPIC_PREFIX ?? '').commands,
      'in.payoutd.PayoutRequested',
    )(command(payoutId) as never)
    await publisher.publish([{ topic, key: `acme:${payoutId}`, value }])
    const order = {
      ...command(payoutId),
      mchOrderNo: orderNo(payoutId),
      notifyUrl: 'http://127.0.0.1:9/never',
    }
    assert.equal((await client.apply(order, { mayStillSend: () => true })).kind, 'accepted')
    await ended(orderNo(payoutId))
  }
  await sentElsewhere('lost')
  const former = await startPayoutd(config, new Set(['intake']), silentLogger)
  await eventually('it is taken in', async () => (await db.run(payouts, {})).length === 1)
  await former.stop()
  await db.run(setBack, {})
  const recovering = spawn(process.execPath, [TERMINAL, 'bin/payoutd.ts', 'recover', ...WHO], {
    env: { ...env, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
  })
  t.after(() => recovering.kill('SIGKILL'))
  let [printed, outcome] = ['', '']
  recovering.stderr.on('data', (part) => (printed += part))
  recovering.stdout.on('data', (part) => (outcome += part))
  const over = once(recovering, 'close')
  const says = (words: string) => eventually(words, async () => printed.includes(words), 60_000)

  await says('Go on?')
  await sentElsewhere('while-asked')
  recovering.stdin.write('y\n')
  await says('payoutd serve has to read 2 messages again')
  const serving = await startPayoutd(config, new Set(['intake']), silentLogger)
  t.after(() => serving.stop())
  await says('acme: waits until')
  await sentElsewhere('while-waiting')
  await over
  assert.match(outcome, /^acme: payoutd queried all 3 payouts .* sending continues\n {2}3 paid\n$/, printed)
})

test('a merchant in the ledger but not in the settings stays fenced; what was published of it is kept, and what nobody can ask about is counted', async (t) => {
  const { env: settings, db, ledger, config } = await besideSandbox(t)
  const env = { ...settings, ...QUICK }
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  await db.run(away, {})
  const publisher = createPublisher('test', config.kafka, silentLogger)
  const value = ledger.encode('PayoutResult', {
    ...{
      merchantId: 'bolt',
      payoutId: 'p',
      batchId: null,
      mchOrderNo: 'P1',
      agentpayOrderId: 'AP1',
      fee: 500n,
    },
    ...{
      status: 'PAID',
      amount: 10_000n,
      currency: 'INR',
      utr: 'U1',
      errors: [],
      evidence: 'QUERY',
      version: 4,
    },
    occurredAt: 1_700_000_000_000,
  })
  const gone = ledger.encode('PayoutEvent', {
    ...{ merchantId: 'acme', payoutId: 'gone', batchId: null, mchOrderNo: 'P2', version: 3 },
    ...{ fromState: 'SUBMITTING', toState: 'PROCESSING', reason: null, evidence: 'APPLY' },
    ...{ amount: 10_000n, currency: 'INR', occurredAt: 1_700_000_000_000 },
  })
  await publisher.publish([
    { topic: ledger.topics.results, key: 'bolt:p', value },
    { topic: ledger.topics.events, key: 'acme:gone', value: gone },
  ])
  await publisher.close()
  const dry = await payoutd(['recover', ...WHO, '--dry-run'], env)
  assert.match(dry.stdout, /bolt is not in the settings: payoutd would fence it until you put it back/)
  assert.equal((await payoutd(['recover', ...WHO, '--yes', '--merchant', 'acme'], env)).code, 0)
  assert.deepEqual(await db.run(fenced, {}), [{ merchantId: 'bolt', by: 'asha' }])
  const done = await payoutd(['recover', ...WHO, '--yes'], env)
  assert.equal(done.code, 0, done.stderr)
  assert.match(
    done.stdout,
    /acme: payoutd queried all 0 .*\nacme: 1 payouts were published as not ended, .*\nbolt: also fenced, but not in the settings/,
  )
  assert.deepEqual(await db.run(fenced, {}), [{ merchantId: 'bolt', by: 'asha' }])
  const message = { payoutId: 'p', version: 4, state: 'paid', fee: 500n, utr: 'U1', at: 1_700_000_000_000 }
  assert.deepEqual(await db.run(kept, {}), [message])
})

/** Stands for anything that prevents one answer from being stored. */
const refusing = sql<object>`alter table recovered_payouts add constraint not_this_one check (found is null)`

/** Settings with the merchants acme and bolt. */
function withBolt(t: TestContext, settings: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const folder = mkdtempSync(path.join(tmpdir(), 'recover-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'merchants.json')
  const merchant = {
    ...{ baseUrl: settings.GATEWAY_BASE_URL, key: 'env:GATEWAY_KEY' },
    dialect: QUICK.GATEWAY_DIALECT,
  }
  const merchants = [
    { id: 'acme', mchId: '1000100', ...merchant },
    { id: 'bolt', mchId: '1000200', ...merchant },
  ]
  writeFileSync(file, JSON.stringify({ merchants }))
  return { ...settings, MERCHANTS_FILE: file }
}

test('whoever recovers one merchant that is not fenced fences the others, which share the ledger', async (t) => {
  const { env: settings, db } = await besideSandbox(t)
  const env = withBolt(t, settings)
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  const one = (merchant: string, how = '--yes') =>
    payoutd(['recover', ...WHO, how, '--merchant', merchant], env)
  assert.match((await one('acme', '--dry-run')).stdout, /; bolt shares the ledger: payoutd would fence it/)
  const { code, stdout, stderr } = await one('acme')
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^acme: payoutd queried all 0 .*\nbolt: also fenced, because they share the ledger/s)
  assert.deepEqual(await db.run(fenced, {}), [{ merchantId: 'bolt', by: 'asha' }])
  assert.equal((await one('bolt')).code, 0)
  assert.deepEqual(await db.run(fenced, {}), [])
})

test('an error in the recovery of one merchant keeps no other merchant fenced', async (t) => {
  const { env: settings, db, send, ended, orderNo } = await besideSandbox(t)
  const env = withBolt(t, settings)
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  await send('p-1')
  await ended(orderNo('p-1'))
  await db.run(refusing, {})
  const { code, stdout, stderr } = await payoutd(['recover', ...WHO, '--yes'], env)
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^acme stays fenced: an error ended its recovery.*\nbolt: payoutd queried all 0 payouts .* continues\n/,
    stderr,
  )
  assert.match(stderr, /not_this_one/)
  assert.deepEqual(await db.run(fenced, {}), [{ merchantId: 'acme', by: 'asha' }])
})

test('a transaction that a program left open in a topic ends a recovery, which keeps the fence and says what to do; run again, it is whole', async (t) => {
  const { env: settings, db, ledger } = await besideSandbox(t)
  const env = { ...settings, ...QUICK }
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  const transaction = await openTransaction(t, [ledger.topics.events])
  t.after(() => transaction.abort().catch(() => undefined))
  for (const how of [[], ['--nothing-lost']]) {
    const { code, stdout, stderr } = await payoutd(['recover', ...WHO, '--yes', ...how], env)
    assert.deepEqual([code, stdout], [1, ''], stderr)
    assert.match(
      stderr,
      /events was not read to its end: payoutd removes no fence\na program left a transaction open in \S+events, partition \d .*; then run the command again\n$/,
    )
    const names = (await db.run(fenced, {})).map(({ merchantId }) => merchantId)
    assert.deepEqual(names, ['acme'])
  }
  await transaction.abort()
  const done = await payoutd(['recover', ...WHO, '--yes'], env)
  assert.equal(done.code, 0, done.stderr)
  assert.deepEqual(await db.run(fenced, {}), [])
})

// The last one: the tests of this file share their topics.
test('a recovery leaves out what payoutd did not write; a message that payoutd cannot read ends it, and it says where that is', async (t) => {
  const { env, config, ledger } = await besideSandbox(t)
  assert.equal((await payoutd(['migrate', ...WHO], env)).code, 0)
  const publisher = createPublisher('test', config.kafka, silentLogger)
  t.after(() => publisher.close())
  const publish = (value: Buffer) =>
    publisher.publish([{ topic: ledger.topics.events, key: 'acme:p', value }])
  await publish(Buffer.from('not ours'))
  const leftOut = await payoutd(['recover', ...WHO, '--yes'], env)
  assert.equal(leftOut.code, 0, leftOut.stderr)
  assert.match(leftOut.stderr, /events\/\d\/\d+: left out, because payoutd did not write it\n/)
  let place = ''
  const ofUnknownSchema = Buffer.of(0, 0x7f, 0, 0, 0, 1)
  await publish(ofUnknownSchema)
  for (const how of [[], ['--nothing-lost']]) {
    const { code, stderr } = await payoutd(['recover', ...WHO, '--yes', ...how], env)
    assert.equal(code, 1)
    assert.match(
      stderr,
      /events has a message that payoutd cannot read: .* give the registry back its schema.* --leave-out \S+\n$/,
    )
    place = /--leave-out (\S+)/.exec(stderr)?.[1] ?? ''
  }
  const done = await payoutd(['recover', ...WHO, '--yes', '--leave-out', place], env)
  assert.equal(done.code, 0, done.stderr)
  assert.ok((await payoutd(['acts', 'list', '--json'], env)).stdout.includes(place))
})
