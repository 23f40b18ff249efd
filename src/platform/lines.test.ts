import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'

/** Its reader reads nothing and exits after two seconds. */
const PIPE = '"$0" "$@" | sleep 2; exit $PIPESTATUS'

/** Logs, works on, and ends on its own. */
const WORKS_ON = `
  const { createLogger } = await import(${JSON.stringify(new URL('./log.ts', import.meta.url).href)})
  const log = createLogger({ name: 'payoutd', level: 'info' })
  for (let n = 0; n < 3_000; n++) {
    log.info({ n, detail: 'x'.repeat(200) }, 'a line')
    if (n % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  process.stderr.write('worked on')
  process.exit(7)`

const script = ['--input-type=module', '-e', WORKS_ON]
const BOUND = { timeout: 10_000, killSignal: 'SIGKILL' } as const

for (const [where, spawned] of [
  [
    'has no room on the disk',
    () => spawn('sh', ['-c', '"$0" "$@" > /dev/full', process.execPath, ...script], BOUND),
  ],
  ['goes to a socket that nobody reads', () => spawn(process.execPath, script, BOUND)],
  ['goes to a pipe that nobody reads', () => spawn('bash', ['-c', PIPE, process.execPath, ...script], BOUND)],
] as const)
  test(`a process whose log ${where} works on, and ends when it should`, async () => {
    const child = spawned()
    let said = ''
    child.stderr.on('data', (text) => {
      said += text
    })
    const [code] = await once(child, 'exit')
    assert.deepEqual({ code, said }, { code: 7, said: 'worked on' })
  })

/** Logs more than the buffer holds while nothing can be written, and goes on once it can write. */
const COMES_BACK = `
  const fs = (await import('node:fs')).default
  const { createLogger } = await import(${JSON.stringify(new URL('./log.ts', import.meta.url).href)})
  const log = createLogger({ name: 'payoutd', level: 'info' })
  const { write } = fs
  const error = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  fs.write = (fd, bytes, done) => setImmediate(done, error)
  for (let n = 0; n < 1500; n++) log.info({ n, filler: '.'.repeat(1000) }, 'a line')
  fs.write = write
  log.info('room again')
  await new Promise((resolve) => setTimeout(resolve, 1000))
  log.info('and on')`

test('a log that lost lines because its disk was full for long goes on and reports how many', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', COMES_BACK], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 10_000,
    killSignal: 'SIGKILL',
  })
  const lines = (await child.stdout?.setEncoding('utf8').toArray())?.join('').trim().split('\n') ?? []
  const written = lines.map((line) => JSON.parse(line) as { msg: string; lines?: number })
  const dropped = written.reduce((all, { lines = 0 }) => all + lines, 0)
  assert.equal(written.filter(({ lines }) => lines === undefined).length + dropped, 1502)
  assert.ok(dropped > 400, `${dropped} dropped`)
  assert.ok(written.some(({ msg }) => msg === 'and on'))
})
