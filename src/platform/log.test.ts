import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { test } from 'node:test'

/** Logs, then works on, and ends by itself. */
const WORKS_ON = `
  const { createLogger } = await import(${JSON.stringify(new URL('log.ts', import.meta.url).href)})
  const log = createLogger({ name: 'payoutd', level: 'info' })
  for (let n = 0; n < 3; n++) {
    log.info({ n }, 'a line')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  process.stderr.write('worked on')
  process.exit(7)`

test('a process whose log has no room on the disk works on, and ends when it should', async (t) => {
  const full = openSync('/dev/full', 'w')
  t.after(() => closeSync(full))
  const child = spawn(process.execPath, ['--input-type=module', '-e', WORKS_ON], {
    stdio: ['ignore', full, 'pipe'],
    timeout: 10_000,
    killSignal: 'SIGKILL',
  })
  let said = ''
  child.stderr?.on('data', (text) => {
    said += text
  })
  const [code] = await once(child, 'close')
  assert.deepEqual({ code, said }, { code: 7, said: 'worked on' })
})
