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

/** Logs more than waits while nothing can be written, and goes on once it can. */
const COMES_BACK = `
  const fs = (await import('node:fs')).default
  const { createLogger } = await import(${JSON.stringify(new URL('log.ts', import.meta.url).href)})
  const log = createLogger({ name: 'payoutd', level: 'info' })
  const { writeSync } = fs
  fs.writeSync = () => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  }
  for (let n = 0; n < 1500; n++) log.info({ n, filler: '.'.repeat(1000) }, 'a line')
  fs.writeSync = writeSync
  log.info('room again')
  await new Promise((resolve) => setTimeout(resolve, 50))
  log.info('and on')`

test('a log that lost lines, as its disk was full for long, goes on and says how many', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', COMES_BACK], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 10_000,
    killSignal: 'SIGKILL',
  })
  const lines = (await child.stdout?.setEncoding('utf8').toArray())?.join('').trim().split('\n') ?? []
  const told = lines.map((line) => JSON.parse(line) as { msg: string; lines?: number })
  const written = told.filter(({ msg }) => msg === 'a line' || msg === 'room again').length
  const dropped = told.find(({ lines }) => lines !== undefined)?.lines ?? 0
  assert.equal(written + dropped, 1501)
  assert.ok(dropped > 400, `${dropped} dropped`)
  assert.equal(told.at(-1)?.msg, 'and on')
})
