import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { after } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'

export type Ended = { code: number | null; stdout: string; stderr: string }

const END = '\u0003ended with '
const PROGRAM = path.join(import.meta.dirname, '../../bin/payoutd.ts')

/** The commands of a test file run in one process, one after another: loading payoutd takes longer than most of them run. */
let host: ChildProcess | undefined
let last: Promise<unknown> = Promise.resolve()

// A command that leaves something open would never end in a process of its own.
after(async () => {
  if (!host) return
  host.disconnect()
  if (await Promise.race([once(host, 'exit'), delay(10_000, null, { ref: false })])) return
  host.kill('SIGKILL')
  throw new Error('a command of payoutd left something open, and would not have ended')
})

/** Runs `payoutd …args` with nothing but `env` and an empty stdin, and resolves when it has ended. */
export function payoutd(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  const ended = last.then(() => runInHost(args, env))
  last = ended.catch(() => undefined)
  return ended
}

async function runInHost(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  host ??= startHost()
  host.send({ args, env })
  const [stdout, stderr] = await Promise.all([untilEnd(host.stdout!), untilEnd(host.stderr!)])
  const [code, ...ended] = stdout.how.split(' ')
  if (ended.length > 0) host = undefined
  return { code: Number(code), stdout: stdout.text, stderr: stderr.text }
}

function startHost(): ChildProcess {
  const { NODE_COMPILE_CACHE } = process.env
  const started = fork(new URL('./many.fixture.ts', import.meta.url), [END], {
    env: { NODE_COMPILE_CACHE },
    // The parent's options are for the test runner.
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  started.stdout?.setEncoding('utf8')
  started.stderr?.setEncoding('utf8')
  return started
}

async function untilEnd(stream: Readable): Promise<{ text: string; how: string }> {
  let all = ''
  for await (const part of stream.iterator({ destroyOnReturn: false })) {
    all += part
    const [text = '', how] = all.split(END)
    if (how?.endsWith('\n')) return { text, how: how.trimEnd() }
  }
  throw new Error(`payoutd ended without a word: ${all}`)
}

/** The same in a process of its own, with `input` as its stdin; `started` receives the process. */
export async function payoutdAlone(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  input = '',
  started: (child: ChildProcess) => void = () => undefined,
): Promise<Ended> {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  started(child)
  // Many commands end without reading it.
  child.stdin.on('error', () => undefined).end(input)
  const ended = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      ended[stream] += text
    })
  }
  const [code] = await once(child, 'close')
  return { code, ...ended }
}
