import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { testEnvironment } from '../../test/ledger.ts'
import { readConfig } from '../config/config.ts'
import { inWords } from '../platform/dependency-fault.ts'
import { createHttpServer, listen } from '../platform/http.ts'

const HINT = 'start everything on this machine with: npm run up'

/** What `payoutd merchants` prints in a directory, with nothing but `env`. */
function complaint(directory: string, env: NodeJS.ProcessEnv): string {
  const program = path.join(import.meta.dirname, '../../bin/payoutd.ts')
  const { status, stderr } = spawnSync(process.execPath, [program, 'merchants'], {
    cwd: directory,
    env,
    encoding: 'utf8',
  })
  assert.equal(status, 1)
  assert.match(stderr, /^settings are missing or wrong:\n/)
  return stderr
}

test('only an operator without any settings and without a stack is told how to start one', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  t.after(() => rmSync(folder, { recursive: true }))
  assert.ok(complaint(folder, {}).endsWith(`\n${HINT}\n`))
  assert.doesNotMatch(complaint(folder, { KAFKA_BROKERS: 'kafka:9092' }), /npm run up/)
  mkdirSync(path.join(folder, '.payoutd'))
  writeFileSync(path.join(folder, '.payoutd', 'stack.env'), '')
  assert.doesNotMatch(complaint(folder, {}), /npm run up/)
})

test('the error about a port in use names the setting that chooses another one', async (t) => {
  const port = String(await takenPort(t))
  const config = readConfig(
    testEnvironment(await freshDatabase(t), { PUBLIC_PORT: port, INTERNAL_PORT: port }),
  )
  for (const name of ['PUBLIC_PORT', 'INTERNAL_PORT'] as const) {
    const at = name === 'PUBLIC_PORT' ? config.publicAt : config.internalAt
    const error = await listen(createHttpServer(), at).catch((reason: unknown) => inWords(reason, config))
    assert.ok(error instanceof Error)
    assert.equal(
      error.message,
      `port ${port} on 127.0.0.1 is taken: stop what uses it, or set ${name} to another one`,
    )
  }
})

async function takenPort(t: TestContext): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

test('a slow reader gets everything that a command prints, and then the process ends', () => {
  const failure = path.join(import.meta.dirname, 'failure.ts')
  const script = `const { leave } = await import('${failure}')
    for (let line = 0; line < 20_000; line++) console.log('a line of what it prints')
    setInterval(() => undefined, 1_000)
    await leave()`
  const { stdout, status } = spawnSync(
    'bash',
    ['-c', '"$0" --input-type=module -e "$1" | (sleep 2; wc -l); exit $PIPESTATUS', process.execPath, script],
    { encoding: 'utf8', timeout: 20_000 },
  )
  assert.deepEqual([stdout.trim(), status], ['20000', 0])
})
