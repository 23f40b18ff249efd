import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { payoutd } from '../../src/cli/cli.fixture.ts'
import { startSandbox } from '../sandbox/sandbox.ts'

const [MCH_ID, KEY] = ['1000100', 'a-key-of-this-test']

async function start(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  const state = path.join(folder, 'sandbox.sqlite')
  const sandbox = await startSandbox({ state, merchants: [{ mchId: MCH_ID, key: KEY }] })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  const out = path.join(folder, 'dialect.json')
  const account = ['--base-url', sandbox.url, '--mch-id', MCH_ID, '--key-env', 'K']
  const run = (args: readonly string[], key = KEY) => payoutd(['gateway', ...args, ...account], { K: key })
  return { run, out }
}

test('the probe finds and writes the dialect of a sandbox, other commands accept it, and it is not overwritten', async (t) => {
  const { run, out } = await start(t)
  const { code, stdout, stderr } = await run(['probe', '--out', out])
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^shown\n {2}body +form\n {2}sign\.algorithm +md5\n/)
  assert.match(stdout, /\nnot shown, so these keep their defaults\n.* duplicateApply +unknown: /s)
  assert.ok(!stdout.includes(KEY))
  assert.equal((await run(['balance', '--dialect', out])).code, 0)

  const before = readFileSync(out, 'utf8')
  const again = await run(['probe', '--out', out])
  assert.deepEqual([again.code, again.stdout], [1, ''])
  assert.match(again.stderr, /already exists: give another --out, or --force/)
  const forced = await run(['probe', '--out', out, '--force', '--json'])
  assert.equal(forced.code, 0)
  assert.deepEqual(JSON.parse(forced.stdout).dialect, JSON.parse(before))
})

test('a missing folder is reported before any call', async (t) => {
  const { run, out } = await start(t)
  const { code, stdout, stderr } = await run(
    ['probe', '--out', path.join(path.dirname(out), 'none', 'd.json')],
    'another-key',
  )
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /^[^\n]*cannot be written: there is no folder [^\n]*\n$/)
})

test('an unknown order gives exit code 1, and the file still gets what the other calls showed', async (t) => {
  const { run, out } = await start(t)
  const { code, stdout } = await run(['probe', '--out', out, '--order', 'NOBODYHASTHIS'])
  assert.equal(code, 1)
  assert.match(stdout, /^warning: the gateway found the order of --order at no path\n/)
  assert.equal((await run(['balance', '--dialect', out])).code, 0)
})

test('with a wrong key nothing is written', async (t) => {
  const { run, out } = await start(t)
  const { code, stdout } = await run(['probe', '--out', out], 'another-key')
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^the gateway returned no balance in any dialect: .*\n {2}received {2}retCode SIGN_ERROR/,
  )
  assert.equal(existsSync(out), false)
})
