import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { anyFreePort } from '../devkit/local/servers/processes/ports.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
const GONE = 'postgres://a:b@127.0.0.1:1/x'
/** A start waits 5 s for Kafka. */
const PATIENCE_MS = 60_000

suite('with a Kafka that accepts connections but never answers', { concurrency: true }, () => {
  test('a start whose database refuses connections ends', async (t) => {
    const [code, said] = await ended(await serve(t))
    assert.equal(code, 1)
    assert.match(said, /refuses connections/)
  })

  test('a start that is asked to stop ends', async (t) => {
    const port = await anyFreePort()
    const serving = await serve(t, port)
    await eventually('it to run', () =>
      fetch(`http://127.0.0.1:${port}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    serving.kill('SIGTERM')
    const [code, said] = await ended(serving)
    assert.equal(code, 0)
    assert.match(said, /stopped before it had started/)
  })
})

async function serve(t: TestContext, internalPort = 0) {
  const child = spawn(process.execPath, ['bin/payoutd.ts', 'serve'], {
    env: {
      ...{ PATH: process.env.PATH, DATABASE_URL: GONE, KAFKA_BROKERS: await silentServer(t) },
      ...{ SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1', GATEWAY_BASE_URL: 'http://127.0.0.1:1' },
      ...{ GATEWAY_MCH_ID: '1000100', GATEWAY_KEY: 'abcdefabcdefabcdefabcdefabcdefab' },
      ...{
        ENCRYPTION_KEYS: `1:${KEY}`,
        FINGERPRINT_KEY: KEY,
        INTERNAL_PORT: `${internalPort}`,
        PUBLIC_PORT: '0',
      },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  return child
}

/** Its exit code, and all its output; null for a process that had to be killed. */
async function ended(child: Awaited<ReturnType<typeof serve>>): Promise<[number | null, string]> {
  const patience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  const said: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => said.push(String(text)))
  const [code] = await once(child, 'close')
  clearTimeout(patience)
  return [code as number | null, said.join('')]
}

/** host:port of a server that accepts connections but never answers. */
async function silentServer(t: TestContext): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => sockets.add(socket.on('error', () => undefined).resume()))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}
