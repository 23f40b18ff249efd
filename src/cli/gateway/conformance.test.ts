import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { startSandbox } from '../../sandbox/sandbox.ts'
import { payoutd } from '../cli.fixture.ts'

const conformance = (baseUrl: string, ...options: string[]) =>
  payoutd(
    [
      ...['gateway', 'conformance', '--base-url', baseUrl, '--mch-id', 'M1000'],
      ...['--key', 'a-long-secret', '--sandbox', ...options],
    ],
    {},
  )

test('a server that differs in nothing is exit code 0, and each case is told once', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'conformance-'))
  const sandbox = await startSandbox({
    state: path.join(folder, 'state.sqlite'),
    merchants: [{ mchId: 'M1000', key: 'a-long-secret' }],
    settleMs: 10,
  })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  const { code, stdout, stderr } = await conformance(sandbox.url, '--yes')
  assert.equal(stderr, '')
  assert.equal(code, 0, stdout)
  assert.equal(stdout.match(/^ {2}holds +payout-create\/taken /gm)?.length, 1)
  assert.match(stdout, /^\d+ hold, 0 differ, 0 were not tried;/m)
})

test('a server that does not answer differs: exit code 1, and the contract’s sentence is shown', async () => {
  const { code, stdout } = await conformance('http://127.0.0.1:9', '--yes')
  assert.equal(code, 1)
  assert.match(
    stdout,
    /differs +balance\/record +no answer to balance: connection-refused\n +contract: the balance is/,
  )
})

test('--json prints the verdicts alone', async () => {
  const { stdout } = await conformance('http://127.0.0.1:9', '--yes', '--json')
  const verdicts: object[] = JSON.parse(stdout)
  assert.deepEqual(
    verdicts.find((each) => 'name' in each && each.name === 'balance/unsigned'),
    {
      name: 'balance/unsigned',
      about: 'the balance answer has no sign',
      verdict: 'differs',
      seen: 'no answer to balance: connection-refused',
    },
  )
})

test('without a terminal nothing is sent unless --yes is given', async () => {
  const { code, stdout, stderr } = await conformance('http://127.0.0.1:9')
  assert.equal(code, 1)
  assert.equal(stdout, '')
  assert.match(stderr, /of ₹1 each at http:\/\/127\.0\.0\.1:9 as merchant M1000.*give --yes/)
})
