import assert from 'node:assert/strict'
import dns, { type LookupOptions } from 'node:dns'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, LookupFunction } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import { systemClock } from '../../platform/running/clock.ts'
import { createTransport } from './transport.ts'

const REQUEST = { path: '/query', contentType: 'application/json', body: '{}' }
const CONNECT_MS = 1_000
const HANGS_MS = 3_000
const yes = () => true

/** The system as Node asks it: two names at once. It takes long for a name that begins with `mute`. */
function mockSystem(t: TestContext): string[] {
  const asked: string[] = []
  const two = pLimit(2)
  const lookup = (hostname: string, { all }: LookupOptions, callback: Parameters<LookupFunction>[2]) =>
    void two(async () => {
      asked.push(hostname)
      if (hostname.startsWith('mute')) {
        await delay(HANGS_MS)
        callback(Object.assign(new Error('no answer'), { code: 'EAI_AGAIN' }), [])
      } else if (all) callback(null, [{ address: '127.0.0.1', family: 4 }])
      else callback(null, '127.0.0.1', 4)
    })
  t.mock.method(dns, 'lookup', lookup as typeof dns.lookup)
  return asked
}

/** Sends once, over a connection of its own. */
async function gatewayAt(t: TestContext) {
  for (const name of ['http_proxy', 'HTTP_PROXY']) delete process.env[name]
  const server = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return async (host: string): Promise<string> => {
    const transport = createTransport({
      origin: `http://${host}:${port}`,
      connections: 1,
      sendTimeoutMs: { connect: CONNECT_MS, headers: 5_000, body: 5_000 },
      tls: {},
      clock: systemClock,
    })
    const sent = await transport.send(REQUEST, yes)
    await transport.close()
    return sent.kind === 'not-sent' ? sent.reason : sent.kind
  }
}

test('a gateway that moves is found at its new address', async (t) => {
  const send = await gatewayAt(t)
  const asked = mockSystem(t)
  for (let times = 0; times < 3; times++) assert.equal(await send('moving.example'), 'answered')
  assert.equal(asked.length, 3)
})

test('while the name servers fail at once, a gateway is found where it was; one that is gone from them is not', async (t) => {
  const send = await gatewayAt(t)
  const asked = mockSystem(t)
  assert.equal(await send('known.example'), 'answered')
  for (const [code, outcome] of [
    ['EAI_AGAIN', 'answered'],
    ['ENOTFOUND', 'dns'],
  ] as const) {
    const lookup = (hostname: string, _: LookupOptions, callback: Parameters<LookupFunction>[2]) => {
      asked.push(hostname)
      callback(Object.assign(new Error(code), { code }), [])
    }
    t.mock.restoreAll()
    t.mock.method(dns, 'lookup', lookup as typeof dns.lookup)
    assert.equal(await send('known.example'), outcome)
  }
  assert.equal(asked.length, 3)
})

test('gateways whose name servers do not answer delay no other gateway, nor the database', async (t) => {
  const send = await gatewayAt(t)
  const asked = mockSystem(t)
  assert.equal(await send('known.example'), 'answered')
  const names = Array.from({ length: 20 }, (_, i) => `mute${i % 2}.example`)
  const mute = Promise.all(names.map(send))
  const database = new Promise((resolve) => dns.lookup('database.example', {}, resolve))
  const late = delay(CONNECT_MS, 'late')
  assert.equal(await send('known.example'), 'answered')
  assert.equal(await Promise.race([database, late]), null)
  assert.deepEqual(new Set(await mute), new Set(['connect-timeout']))
  assert.ok(asked.filter((name) => name.startsWith('mute')).length <= 2, String(asked))
})
