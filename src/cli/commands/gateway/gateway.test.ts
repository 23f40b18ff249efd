import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { startSandbox } from '../../../../devkit/sandbox/sandbox.ts'
import { freshDatabase } from '../../../../test/database.ts'
import { startServer } from '../../../gateway/testing.ts'
import { latestActs } from '../../../ledger/sql/acts.ts'
import { qrTerminal } from '../../../payins/qr.ts'
import { payoutd } from '../../cli.fixture.ts'
import { paiseOf } from './paise-of.ts'

const [MCH_ID, KEY] = ['1000100', 'a-key-of-this-test']
const NOTIFY = ['--notify-url', 'http://127.0.0.1:9/callbacks']
const WHO = ['--by', 'asha', '--reason', 'a trial']
const APPLY = ['payout', 'apply', ...WHO, '--mch-order-no', 'T1', '--amount', '1000000', ...NOTIFY]
const TO_ASHA = ['--account-no', '50100123456789', '--ifsc', 'HDFC0001234', '--account-name', 'Asha Menon']

/** Runs `payoutd gateway` on a sandbox of its own, which is the one merchant of the environment. */
async function gatewayOf(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  const state = path.join(folder, 'sandbox.sqlite')
  const sandbox = await startSandbox({ state, merchants: [{ mchId: MCH_ID, key: KEY }], settleMs: 0 })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  const env = {
    GATEWAY_BASE_URL: sandbox.url,
    GATEWAY_MCH_ID: MCH_ID,
    GATEWAY_KEY: KEY,
    GATEWAY_DIALECT: 'sandbox',
  }
  const run = (args: readonly string[], over: NodeJS.ProcessEnv = {}) =>
    payoutd(['gateway', ...args], { ...env, ...over })
  return { run, url: sandbox.url, folder }
}

test('the balance is shown in rupees to people and in paise to programs, with no database or Kafka in the settings', async (t) => {
  const { run } = await gatewayOf(t)
  const { code, stdout } = await run(['balance'])
  assert.equal(code, 0)
  assert.match(stdout, /^balance of 1000100\n {2}available {2}₹10,00,00,000\.00\n/)
  const json = await run(['balance', '--json'])
  assert.equal(JSON.parse(json.stdout).availableAmount, '10000000000')
})

test('an account can be given in full, and the error names what is missing', async (t) => {
  const { run, url, folder } = await gatewayOf(t)
  const keyFile = path.join(folder, 'key')
  writeFileSync(keyFile, `${KEY}\n`)
  const account = ['balance', '--base-url', url, '--mch-id', MCH_ID]
  const nothing = { GATEWAY_BASE_URL: '', GATEWAY_MCH_ID: '', GATEWAY_KEY: '' }
  for (const key of [
    ['--key', KEY],
    ['--key-file', keyFile],
  ]) {
    assert.equal((await run([...account, ...key], nothing)).code, 0)
  }
  const unnamed = await run(account, nothing)
  assert.deepEqual([unnamed.code, unnamed.stdout], [1, ''])
  assert.match(
    unnamed.stderr,
    /^to use an account without --merchant, give --base-url, --mch-id and one of --key-file/,
  )
})

test('a refusal that the dialect does not know counts as unknown, exit code 2, and no output contains the key', async (t) => {
  const { run } = await gatewayOf(t)
  const { code, stdout, stderr } = await run(['balance'], { GATEWAY_KEY: 'another-key-of-this-test' })
  assert.equal(code, 2)
  assert.match(stdout, /^unknown: .*merchant number or key may be wrong\n {2}retCode {2}SIGN_ERROR\n/)
  assert.ok(!`${stdout}${stderr}`.includes('another-key'))
})

test('a payout is not sent past the ledger without a question', async (t) => {
  const { run } = await gatewayOf(t)
  const { code, stdout, stderr } = await run([...APPLY, ...TO_ASHA])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /outside payoutd’s ledger.*give --yes/)
  assert.equal((await run(['payout', 'query', '--mch-order-no', 'T1'])).code, 1)
})

test('a payout is sent, found again by either number, and not sent twice, and its account is masked throughout', async (t) => {
  const { run } = await gatewayOf(t)
  const sent = await run([...APPLY, ...TO_ASHA, '--yes', '--json'])
  assert.equal(sent.code, 0)
  const { agentpayOrderId, exchange } = JSON.parse(sent.stdout)
  assert.equal(exchange.request.accountNo, '••••6789')
  assert.ok(!/50100123456789|Asha/.test(sent.stdout))
  for (const by of [
    ['--mch-order-no', 'T1'],
    ['--agentpay-order-id', agentpayOrderId],
  ]) {
    const { code, stdout } = await run(['payout', 'query', ...by])
    assert.equal(code, 0)
    assert.match(stdout, /^the payout is \w+\n.* amount +₹10,000\.00\n/s)
  }
  const again = await run([...APPLY, ...TO_ASHA, '--yes'])
  assert.equal(again.code, 2)
  assert.match(
    again.stdout,
    /^the gateway already has an order T1, and may have paid it: query it with payoutd gateway payout query --mch-order-no T1\n/,
  )
})

test('a payout that breaks rules of the contract is not sent, and each rule is named', async (t) => {
  const { run } = await gatewayOf(t)
  const { code, stdout } = await run([
    ...APPLY,
    '--account-no',
    '50100123456789',
    '--phone-number',
    '12',
    '--yes',
  ])
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^not sent: phoneNumber must be 10 digits, .*; ifsc must be given, or vpa, and not both\n$/,
  )
})

test('an order whose callbacks payoutd could not verify is not sent', async (t) => {
  const { run } = await gatewayOf(t)
  const notify = ['--notify-url', 'http://127.0.0.1:9/callbacks?merchant=acme']
  for (const args of [
    [...APPLY, ...TO_ASHA, ...notify, '--yes'],
    ['payin', 'create', ...WHO, '--mch-order-no', 'I1', '--amount', '50000', ...notify],
  ]) {
    const { code, stdout } = await run(args)
    const why =
      'not sent: notifyUrl must have neither a query string nor a fragment: the gateway writes the result there\n'
    assert.deepEqual([code, stdout], [1, why])
  }
})

test('if the answer is not HTTP 200, the command shows status and path, and what to query next', async (t) => {
  const { run } = await gatewayOf(t)
  const { url } = await startServer(t, (_, response) => response.writeHead(502).end())
  const unwell = { GATEWAY_BASE_URL: url }
  const balance = await run(['balance'], unwell)
  assert.match(balance.stdout, /^unknown: HTTP 502 from \/api\/agentpay\/query_balance, not 200\n/)
  const applied = await run([...APPLY, ...TO_ASHA, '--yes'], unwell)
  assert.equal(applied.code, 2)
  assert.match(
    applied.stdout,
    /^unknown: HTTP 502 from \/api\/agentpay\/apply, not 200; query it with payoutd gateway payout query --mch-order-no T1\n/,
  )
  const created = await run(
    ['payin', 'create', ...WHO, '--mch-order-no', 'I1', '--amount', '50000', ...NOTIFY],
    unwell,
  )
  assert.match(created.stdout, /; query it with payoutd gateway payin query --mch-order-no I1\n/)
})

test('a payin is created and found, and an unknown order cannot be recovered', async (t) => {
  const { run } = await gatewayOf(t)
  const created = await run([
    'payin',
    'create',
    ...WHO,
    '--mch-order-no',
    'I1',
    '--amount',
    '50000',
    ...NOTIFY,
  ])
  assert.equal(created.code, 0)
  const [, payOrderId = ''] = /payOrderId +(\S+)/.exec(created.stdout) ?? []
  assert.match(created.stdout, /^created, not paid yet\n.*checkout page +http/s)
  const found = await run(['payin', 'query', '--pay-order-id', payOrderId])
  assert.equal(found.code, 0)
  assert.match(found.stdout, /^the payin is pending\n {2}mchOrderNo +I1\n/)
  const drawn = await run([
    'payin',
    'create',
    ...WHO,
    '--mch-order-no',
    'I2',
    '--amount',
    '50000',
    ...NOTIFY,
    '--qr',
  ])
  const [, qrString = ''] = /QR string +(\S+)/.exec(drawn.stdout) ?? []
  assert.ok(drawn.stdout.endsWith(`${await qrTerminal(qrString)}\n`))
  const returnUrl = 'https://shop.example:8443/orders/20261121'
  const json = await run([
    ...['payin', 'create', ...WHO, '--mch-order-no', 'I3', '--amount', '50000', ...NOTIFY],
    ...['--return-url', returnUrl, '--json'],
  ])
  const { payParams, exchange } = JSON.parse(json.stdout)
  assert.match(payParams.payUrl, /^http:\/\/127\.0\.0\.1:\d+\/checkout\/PI\d+$/)
  assert.equal(exchange.request.returnUrl, returnUrl)
  assert.ok(!json.stdout.includes('••••'))
  const lost = await run(['payin', 'recover', ...WHO, '--pay-order-id', 'NONE', '--utr', '412345678901'])
  assert.equal(lost.code, 1)
  assert.match(lost.stdout, /^not found\n {2}retCode {2}ORDER_NOT_FOUND\n/)
})

test('an amount must be whole paise, and nothing that could be read otherwise', () => {
  assert.equal(paiseOf('50000'), 50_000n)
  for (const amount of [
    '1e4',
    '100.00',
    '-100',
    '+100',
    '010000',
    '0',
    '',
    ' 100',
    '1,000',
    '9'.repeat(17),
  ]) {
    assert.throws(() => paiseOf(amount), /whole number of paise/)
  }
})

test('with a database, a payout past the ledger is recorded before it is sent', async (t) => {
  const { run, url } = await gatewayOf(t)
  const { url: databaseUrl, db } = await freshDatabase(t)
  const apply = [...APPLY, ...TO_ASHA, '--yes']
  const away = await run(apply, { DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' })
  assert.equal(away.code, 1)
  const { code, stderr } = await run(apply, { DATABASE_URL: databaseUrl })
  assert.deepEqual([code, stderr], [0, ''])
  const [act, ...others] = await db.run(latestActs, { merchantId: null, since: null, limit: 10 })
  assert.deepEqual(
    [act?.command, act?.by, act?.subjects, others.length],
    ['gateway payout apply', 'asha', ['T1'], 0],
  )
  assert.deepEqual(act?.after, {
    ...{ baseUrl: url, mchId: MCH_ID, amount: '1000000' },
    ...{ accountNo: '••••6789', vpa: null },
  })
})
