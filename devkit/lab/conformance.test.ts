import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { payoutd } from '../../src/cli/cli.fixture.ts'
import { loadDialect } from '../../src/gateway/dialect/dialect-file.ts'
import { signedJson, startServer } from '../../src/gateway/testing.ts'
import { startSandbox } from '../sandbox/sandbox.ts'

const conformance = (baseUrl: string, ...options: string[]) =>
  payoutd(
    [
      ...[
        'gateway',
        'conformance',
        '--by',
        'asha',
        '--reason',
        'a trial',
        '--base-url',
        baseUrl,
        '--mch-id',
        'M1000',
      ],
      ...['--key', 'a-long-secret', '--sandbox', ...options],
    ],
    {},
  )

async function startSandboxOf(t: TestContext, key: string): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'conformance-'))
  const state = path.join(folder, 'state.sqlite')
  const sandbox = await startSandbox({ state, merchants: [{ mchId: 'M1000', key }], settleMs: 10 })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  return sandbox.url
}

test('a server that differs in nothing gives exit code 0, and each case is shown once', async (t) => {
  const { code, stdout, stderr } = await conformance(await startSandboxOf(t, 'a-long-secret'), '--yes')
  assert.equal(stderr, 'DATABASE_URL is not set, so payoutd keeps no record of this act\n')
  assert.equal(code, 0, stdout)
  assert.equal(stdout.match(/^ {2}holds +payout-create\/taken /gm)?.length, 1)
  assert.match(stdout, /^\d+ hold, 0 differ, 0 were not tried;/m)
})

/** A gateway that only answers the balance query, with a sign that the contract does not have. */
async function startPoor(t: TestContext): Promise<string> {
  const { url } = await startServer(t, ({ path }, response) => {
    if (path !== loadDialect('default').paths.balance) return response.writeHead(404).end()
    const paise = { amount: 1, frozenAmount: 0, availableAmount: 1, pendingAmount: 0, unsettledAmount: 0 }
    return response.end(signedJson({ retCode: 'SUCCESS', ...paise }, loadDialect('default'), 'a-long-secret'))
  })
  return url
}

test('a difference gives exit code 1, and the contract’s sentence is shown', async (t) => {
  const { code, stdout } = await conformance(await startPoor(t), '--yes')
  assert.equal(code, 1)
  assert.match(stdout, /differs +balance\/unsigned +.*\n +contract: the balance answer has no sign/)
})

test('--json prints only the verdicts', async (t) => {
  const { stdout } = await conformance(await startPoor(t), '--yes', '--json')
  const verdicts: { name?: string; about?: string; verdict?: string }[] = JSON.parse(stdout)
  const unsigned = verdicts.find(({ name }) => name === 'balance/unsigned')
  assert.deepEqual([unsigned?.verdict, unsigned?.about], ['differs', 'the balance answer has no sign'])
})

test('if nobody listens, the command says only that: exit code 2', async () => {
  const { code, stdout } = await conformance('http://127.0.0.1:9', '--yes')
  assert.deepEqual([code, stdout], [2, 'the gateway does not answer: ECONNREFUSED\n'])
})

test('with a wrong key, the command says only that: exit code 2', async (t) => {
  const url = await startSandboxOf(t, 'another-key')
  const { code, stdout } = await conformance(url, '--yes')
  assert.equal(code, 2)
  assert.match(
    stdout,
    /^the gateway returns no balance .*the merchant number, the key or the dialect is wrong.*\n {2}retCode {2}SIGN_ERROR\n/,
  )
  assert.ok(!stdout.includes('differ'))
})

test('without a terminal the command sends nothing unless --yes is given', async () => {
  const { code, stdout, stderr } = await conformance('http://127.0.0.1:9')
  assert.equal(code, 1)
  assert.equal(stdout, '')
  assert.match(stderr, /of ₹1 each at http:\/\/127\.0\.0\.1:9 as merchant M1000.*give --yes/)
})
