import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { registryUrl, subjectOf, unique } from '../kafka/kafka.fixture.ts'
import type { AvroSchema } from './avro.ts'
import { connectRegistry, type Registry, RegistryAway, subjectName } from './registry.ts'

const schema = (...fields: unknown[]): AvroSchema => ({
  type: 'record',
  namespace: 'test',
  name: 'Thing',
  fields,
})
const name = { name: 'name', type: 'string' }
const note = { name: 'note', type: ['null', 'string'], default: null }
const rank = { name: 'rank', type: 'int' }
const full = (topic: string, schema: AvroSchema) => subjectOf(schema, topic)
const NONE: ReadonlySet<string> = new Set()

test('a schema registered twice keeps its id', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  const subject = full(unique('topic'), schema(name))
  assert.equal(await registry.register(subject), await registry.register(subject))
  assert.equal(
    await connectRegistry({ url: registryUrl() }).register(subject),
    await registry.register(subject),
  )
})

test('processes that register the same schema at the same time all succeed', async () => {
  for (let round = 0; round < 5; round++) {
    const subject = full(unique('topic'), schema({ name: `field${round}`, type: 'string' }))
    const registering = Array.from({ length: 10 }, () =>
      connectRegistry({ url: registryUrl() }).register(subject),
    )
    assert.equal(new Set(await Promise.all(registering)).size, 1)
  }
})

test('a schema that old readers can read is accepted', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  const topic = unique('topic')
  const before = await registry.register(full(topic, schema(name)))
  assert.notEqual(await registry.register(full(topic, schema(name, note))), before)
})

test('an incompatible schema is refused, naming the subject', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  const topic = unique('topic')
  await registry.register(full(topic, schema(name)))
  await assert.rejects(registry.register(full(topic, schema(name, rank))), ({ message }: Error) => {
    assert.match(message, new RegExp(`refuses the schema of ${topic}-test\\.Thing.*FULL_TRANSITIVE`))
    return true
  })
})

test('compatibility holds against all earlier schemas, not only the last', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  const topic = unique('topic')
  const rankWithDefault = { ...rank, default: 0 }
  await registry.register(full(topic, schema(name)))
  await registry.register(full(topic, schema(name, rankWithDefault)))
  // Compatible with the second schema only; its reader could not read what the first one wrote.
  await assert.rejects(registry.register(full(topic, schema(name, rank))), /refuses/)
})

test('if the registry says that an id does not exist, payoutd believes it', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  assert.equal(await registry.writerSchema(1_000_000_007, NONE), 'unknown')
})

test('a schema is read if it is registered under one of our subjects', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  const [ours, theirs] = [
    full(unique('topic'), schema(name, note)),
    full(unique('topic'), schema(name, note)),
  ]
  const id = await registry.register(theirs)
  const subjects = new Set([subjectName(ours)])
  assert.equal(await registry.writerSchema(id, subjects), 'foreign')
  assert.equal(await registry.register(ours), id)
  assert.equal((await registry.writerSchema(id, subjects)).toString(), '"test.Thing"')
})

test('a schema is found by the exact registered text only', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  const topic = unique('topic')
  assert.equal(await registry.lookUp(full(topic, schema(name))), null)
  const id = await registry.register(full(topic, schema(name)))
  assert.equal(await registry.lookUp(full(topic, schema(name))), id)
  assert.equal(await registry.lookUp(full(topic, schema(name, note))), null)
})

test('a registry that is down is an error, not an unknown schema', async () => {
  const down = connectRegistry({ url: 'http://127.0.0.1:9' })
  await assert.rejects(down.writerSchema(1, NONE), /could not be asked/)
  await assert.rejects(down.lookUp(full('topic', schema(name))), /could not be asked/)
})

test('a 404 that is not the registry’s own is an error, not an unknown schema', async (t) => {
  const proxy = createServer((_, response) => response.writeHead(404).end('{"message":"no such route"}'))
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening))
  t.after(() => proxy.close())
  const registry = connectRegistry({ url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` })
  await assert.rejects(registry.writerSchema(1, NONE), /could not be asked/)
  await assert.rejects(registry.lookUp(full('topic', schema(name))), /no such route/)
})

test('a registry that cannot reach its own store, or behind something that answers for it, is away; one that refuses is not', async (t) => {
  let [status, body] = [200, '']
  const server = createServer((_, response) => response.writeHead(status).end(body))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.after(() => server.close())
  const registry = connectRegistry({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  const lookUp = () => registry.lookUp(full('topic', schema(name)))
  for (const answer of [
    [503, '{"error_code":50003}'],
    [429, '{"error_code":42901}'],
    [404, 'default backend'],
    [200, '<html>'],
  ] as const) {
    ;[status, body] = answer
    await assert.rejects(lookUp, RegistryAway)
  }
  for (const answer of [
    [401, ''],
    [403, '{"error_code":40301}'],
    [422, '{"error_code":42201}'],
  ] as const) {
    ;[status, body] = answer
    await assert.rejects(lookUp, (error) => !(error instanceof RegistryAway))
  }
})

test('a schema that payoutd may not read is foreign, unless the registry has it under a subject of ours', async (t) => {
  let isWhole = true
  const answers: Record<string, [number, unknown]> = {
    '/schemas/ids/7/versions': [403, { error_code: 40301 }],
    '/schemas/ids/8/versions': [403, { error_code: 40301 }],
    '/schemas/ids/9/versions': [403, {}],
    '/subjects/ours/versions': [200, [1, 2]],
    '/subjects/ours/versions/1': [200, { id: 5 }],
    '/subjects/ours/versions/2': [200, { id: 8 }],
    '/subjects/later/versions': [404, { error_code: 40401 }],
    '/schemas/ids/8': [200, { schema: JSON.stringify(schema(name)) }],
  }
  const server = createServer(({ url = '' }, response) => {
    const [status, body] = answers[url.replace('?deleted=true', '')] ?? [500, {}]
    if (!isWhole && url.includes('/subjects/ours')) response.writeHead(503).end('{}')
    else response.writeHead(status).end(JSON.stringify(body))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.after(() => server.close())
  const registry = connectRegistry({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  const ask = (id: number) => registry.writerSchema(id, new Set(['later', 'ours']))
  assert.equal(await ask(7), 'foreign')
  assert.equal((await ask(8)).toString(), '"test.Thing"')
  await assert.rejects(ask(9), RegistryAway)
  isWhole = false
  await assert.rejects(ask(7), RegistryAway)
})

/** A registry with one schema, under one of our subjects, that answers as `answer` does when asked for it. */
async function registryThat(
  t: TestContext,
  answer: (path: string, response: ServerResponse) => void,
): Promise<Registry> {
  const server = createServer(({ url = '' }, response) => {
    if (url.includes('/versions?')) response.end(JSON.stringify([{ subject: 'ours', version: 1 }]))
    else answer(url, response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.after(() => server.close())
  return connectRegistry({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

const OURS = new Set(['ours'])
const registered = (about: AvroSchema, references: object[] = []) =>
  JSON.stringify({ schema: JSON.stringify(about), references })

test('a registry answer that is cut off or comes from a proxy is an error, and the next one counts', {
  timeout: 20_000,
}, async (t) => {
  const whole = registered(schema(name))
  const bad: ((response: ServerResponse) => void)[] = [
    (response) => {
      response.writeHead(200, { 'content-length': whole.length }).write(whole.slice(0, 20))
      setTimeout(() => response.destroy(), 50)
    },
    (response) => response.writeHead(200, { connection: 'close' }).end(whole.slice(0, 20)),
    (response) => response.end('<html>we are back soon</html>'),
    (response) => response.end('{}'),
  ]
  const registry = await registryThat(t, (_, response) => {
    const next = bad.shift()
    if (next) next(response)
    else response.end(whole)
  })
  while (bad.length > 0) await assert.rejects(registry.writerSchema(1, OURS), /could not be asked/)
  assert.equal((await registry.writerSchema(1, OURS)).toString(), '"test.Thing"')
})

test('a schema that is not Avro is unreadable; one is read with those that it refers to, and unknown without them', async (t) => {
  const inner: AvroSchema = { type: 'record', namespace: 'test', name: 'Inner', fields: [name] }
  const field = (name: string, type: string) => ({ name, type })
  const twice = schema(field('one', 'test.Inner'), field('two', 'test.Inner'))
  const to = (subject: string) => ({ name: subject, subject, version: 2 })
  const answers: Record<string, string> = {
    '/schemas/ids/1': JSON.stringify({ schemaType: 'PROTOBUF', schema: 'message Thing {}' }),
    '/schemas/ids/2': registered(twice, [to('in/ner'), to('in/ner')]),
    '/schemas/ids/3': registered(twice),
    '/schemas/ids/4': registered(schema(name), [to('round')]),
    '/schemas/ids/5': registered(schema(name), [to('gone')]),
    '/subjects/in%2Fner/versions/2?deleted=true': registered(inner),
    '/subjects/round/versions/2?deleted=true': registered(inner, [to('round'), to('in/ner')]),
  }
  const registry = await registryThat(t, (path, response) => {
    const answer = answers[path]
    if (answer) response.end(answer)
    else response.writeHead(404).end('{"error_code":40401}')
  })
  const read = await Promise.all([1, 2, 3, 4, 5].map((id) => registry.writerSchema(id, OURS)))
  assert.deepEqual(read.map(String), ['unreadable', '"test.Thing"', 'unreadable', 'unreadable', 'unknown'])
})
