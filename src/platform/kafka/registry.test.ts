import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { AvroSchema } from './avro.ts'
import { registryUrl, subjectOf, unique } from './kafka.fixture.ts'
import { connectRegistry, subjectName } from './registry.ts'

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
  // Compatible with the second schema alone; a reader of it could not read what the first one wrote.
  await assert.rejects(registry.register(full(topic, schema(name, rank))), /refuses/)
})

test('a registry that says an id does not exist is believed', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  assert.equal(await registry.writerSchema(1_000_000_007, NONE), 'unknown')
})

test('a schema is read if it is registered under a subject of ours', async () => {
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

test('a schema is found by the very text that was registered, and no other is', async () => {
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
