import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { registryUrl, subjectOf, unique } from '../kafka/kafka.fixture.ts'
import { eventually } from '../running/eventually.fixture.ts'
import { type AvroSchema, fullName } from './avro.ts'
import { type Codec, openCodec, registerSchemas } from './codec.ts'
import { connectRegistry, type Registry } from './registry.ts'

const MONEY = { name: 'amount', type: 'long' }
const WHEN = { name: 'at', type: ['null', { type: 'long', logicalType: 'timestamp-millis' }], default: null }
const NOTES = { name: 'notes', type: { type: 'map', values: 'string' }, default: {} }
const LINES = { name: 'lines', type: { type: 'array', items: 'string' }, default: [] }

const order = (...fields: unknown[]): AvroSchema => ({
  type: 'record',
  namespace: 'test',
  name: 'Order',
  fields,
})
async function codecOf(
  schema: AvroSchema,
  topic = unique('topic'),
): Promise<{ codec: Codec; encode: (value: object) => Buffer }> {
  const registry = connectRegistry({ url: registryUrl() })
  const one = subjectOf(schema, topic, 'BACKWARD_TRANSITIVE')
  await registerSchemas(registry, [one])
  const codec = await openCodec(registry, [one])
  return { codec, encode: codec.encoder(topic, fullName(schema)) }
}

/** Bytes of a writer that registered an arbitrary schema under the topic's subject. */
async function written(topic: string, schema: AvroSchema, body: Buffer): Promise<Buffer> {
  const headers = { 'content-type': 'application/vnd.schemaregistry.v1+json' }
  const ask = async (method: string, path: string, sent: object): Promise<{ id: number }> => {
    const response = await fetch(registryUrl() + path, { method, headers, body: JSON.stringify(sent) })
    assert.equal(response.status, 200)
    return (await response.json()) as { id: number }
  }
  const subject = `${topic}-test.Order`
  await ask('PUT', `/config/${subject}`, { compatibility: 'NONE' })
  const { id } = await ask('POST', `/subjects/${subject}/versions`, { schema: JSON.stringify(schema) })
  const header = Buffer.alloc(5)
  header.writeInt32BE(id, 1)
  return Buffer.concat([header, body])
}

async function readAs(codec: Codec, bytes: Buffer): Promise<unknown> {
  const decoded = await codec.decode(bytes)
  assert.equal(decoded.kind, 'decoded')
  return decoded.kind === 'decoded' ? { ...(decoded.value as object) } : undefined
}

async function reasonOf(codec: Codec, bytes: Buffer | null): Promise<string> {
  const decoded = await codec.decode(bytes)
  return decoded.kind === 'undecodable' ? decoded.reason : decoded.kind
}

test('amounts beyond what a number holds exactly survive, and times are numbers', async () => {
  const { codec, encode } = await codecOf(order(MONEY, WHEN))
  for (const amount of [0n, -1n, 9_007_199_254_740_993n, 2n ** 63n - 1n, -(2n ** 63n)]) {
    assert.deepEqual(await readAs(codec, encode({ amount, at: 1_793_923_200_000 })), {
      amount,
      at: 1_793_923_200_000,
    })
  }
})

test('messages of an older and of a newer writer are read with our schema', async () => {
  const topic = unique('topic')
  const older = await codecOf(
    order(MONEY, { name: 'dropped', type: { type: 'array', items: 'string' } }),
    topic,
  )
  const { codec } = await codecOf(order(NOTES, MONEY, WHEN), topic)
  const newer = await codecOf(
    order(WHEN, { name: 'added', type: ['null', 'string'], default: null }, NOTES, MONEY),
    topic,
  )
  assert.deepEqual(await readAs(codec, older.encode({ amount: 5n, dropped: ['x', 'y'] })), {
    notes: {},
    amount: 5n,
    at: null,
  })
  assert.deepEqual(await readAs(codec, newer.encode({ at: 7, added: 'z', notes: { a: 'b' }, amount: 6n })), {
    notes: { a: 'b' },
    amount: 6n,
    at: 7,
  })
})

test('a map keeps all of its keys, whatever their names', async () => {
  const { codec, encode } = await codecOf(order(NOTES))
  const notes = JSON.parse('{"__proto__":"kept","constructor":"too"}') as object
  const decoded = await codec.decode(encode({ notes }))
  assert.equal(decoded.kind, 'decoded')
  const read = decoded.kind === 'decoded' ? (decoded.value as { notes: object }).notes : {}
  assert.equal(JSON.stringify(read), JSON.stringify(notes))
})

test('a writer’s int is read as our bigint, its plain long as our time', async () => {
  const topic = unique('topic')
  const writer = await codecOf(order({ name: 'amount', type: 'int' }, { name: 'at', type: 'long' }), topic)
  const { codec } = await codecOf(order(MONEY, WHEN), topic)
  assert.deepEqual(await readAs(codec, writer.encode({ amount: 5, at: 7n })), { amount: 5n, at: 7 })
})

test('a tombstone, foreign bytes and an unknown schema id are bad data, each with its own reason', async () => {
  const { codec } = await codecOf(order(MONEY))
  assert.equal(await reasonOf(codec, null), 'tombstone')
  assert.equal(await reasonOf(codec, Buffer.from('{"amount":5}')), 'not-avro')
  assert.equal(await reasonOf(codec, Buffer.from([0, 0, 0])), 'not-avro')
  assert.equal(await reasonOf(codec, Buffer.from([0, 0x7f, 0xff, 0xff, 0xfe, 2])), 'unknown-schema-id')
})

test('the codec asks the registry once for an id of many records, and for an unknown id not again for a while', async () => {
  const registry = connectRegistry({ url: registryUrl() })
  const one = subjectOf(order(MONEY), unique('topic'), 'BACKWARD_TRANSITIVE')
  await registerSchemas(registry, [one])
  let questions = 0
  const counting: Registry = {
    ...registry,
    writerSchema: async () => {
      questions++
      return 'unknown'
    },
  }
  const codec = await openCodec(counting, [one])
  const bytes = Buffer.from([0, 0x7f, 0xff, 0xff, 0xfe, 2])
  const reasons = await Promise.all(Array.from({ length: 50 }, () => reasonOf(codec, bytes)))
  assert.deepEqual([new Set(reasons), questions], [new Set(['unknown-schema-id']), 1])
  await reasonOf(codec, bytes)
  assert.equal(questions, 1)
})

test('a schema registered only under other subjects is not read until it is under ours', async () => {
  const { codec } = await codecOf(order(MONEY), unique('topic'))
  const [ours, theirs] = [unique('topic'), unique('topic')]
  const stranger = await codecOf({ ...order(MONEY), name: 'Stranger' })
  assert.equal(await reasonOf(codec, stranger.encode({ amount: 5n })), 'foreign-schema')

  const reader = await codecOf(order(MONEY, WHEN), ours)
  const writer = await codecOf(order(MONEY), theirs)
  const bytes = writer.encode({ amount: 5n })
  assert.equal(await reasonOf(reader.codec, bytes), 'foreign-schema')
  await connectRegistry({ url: registryUrl() }).register(subjectOf(order(MONEY), ours, 'BACKWARD_TRANSITIVE'))
  await eventually('the schema is read', async () => (await reasonOf(reader.codec, bytes)) === 'decoded')
})

test('a schema under our subject that cannot become ours is bad data', async () => {
  const topic = unique('topic')
  const { codec } = await codecOf(order(MONEY), topic)
  const bytes = await written(topic, order({ name: 'other', type: 'string' }), Buffer.of(2, 0x78))
  assert.equal(await reasonOf(codec, bytes), 'incompatible-schema')
})

test('too few or too many bytes for their schema are bad data', async () => {
  const { codec, encode } = await codecOf(order(MONEY, { name: 'text', type: 'string' }))
  const good = encode({ amount: 12345n, text: 'hello' })
  for (let end = 5; end < good.length; end++) {
    assert.equal(await reasonOf(codec, good.subarray(0, end)), 'bad-payload', `${end} bytes`)
  }
  assert.equal(await reasonOf(codec, Buffer.concat([good, Buffer.of(1)])), 'bad-payload')
})

test('a damaged item count is bad data at once, even in a field that we do not read', async () => {
  for (const field of [NOTES, LINES]) {
    const topic = unique('topic')
    const writer = await codecOf(order(field, MONEY), topic)
    const bytes = writer.encode({ [field.name]: field === NOTES ? { a: 'b' } : ['a'], amount: 1n })
    const damaged = Buffer.concat([
      bytes.subarray(0, 5),
      Buffer.from([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f]),
      bytes.subarray(6),
    ])
    const reader = await codecOf(order(MONEY), topic)
    assert.equal(await reasonOf(writer.codec, damaged), 'bad-payload')
    assert.equal(await reasonOf(reader.codec, damaged), 'bad-payload')
  }
})

/** Avro's encoding of an item count. */
function long(value: number): Buffer {
  const bytes: number[] = []
  for (let left = BigInt(value) * 2n; ; left >>= 7n) {
    if (left < 0x80n) return Buffer.of(...bytes, Number(left))
    bytes.push(Number(left & 0x7fn) | 0x80)
  }
}

test('a record has a limited number of items, over all its arrays, even if items take no bytes', async () => {
  const nulls = { name: 'nulls', type: { type: 'array', items: 'null' }, default: [] }
  const nested = {
    name: 'nested',
    type: { type: 'array', items: { type: 'array', items: 'null' } },
    default: [],
  }
  const topic = unique('topic')
  const { codec } = await codecOf(order(MONEY), topic)
  const reads = async (schema: AvroSchema, ...counts: number[]) => {
    const body = Buffer.concat([...counts.map(long), long(5)])
    return reasonOf(codec, await written(topic, schema, body))
  }
  assert.equal(await reads(order(nulls, MONEY), 10_000, 0), 'decoded')
  assert.equal(await reads(order(nulls, MONEY), 10_001, 0), 'bad-payload')
  assert.equal(await reads(order(nulls, MONEY), 6_000, 6_000, 0), 'bad-payload')
  assert.equal(await reads(order(nulls, MONEY), 2 ** 52, 0), 'bad-payload')
  assert.equal(await reads(order(nested, MONEY), 2, 4_000, 0, 4_000, 0, 0), 'decoded')
  assert.equal(await reads(order(nested, MONEY), 3, 4_000, 0, 4_000, 0, 4_000, 0, 0), 'bad-payload')
  // The count is per record, not over all records.
  assert.equal(await reads(order(nulls, MONEY), 10_000, 0), 'decoded')
})

test('a schema that contains itself, or more values than any of ours, is not read', async () => {
  const topic = unique('topic')
  const { codec } = await codecOf(order(MONEY), topic)
  const self = { name: 'self', type: ['null', 'test.Order'], default: null }
  assert.equal(
    await reasonOf(codec, await written(topic, order(self, MONEY), long(0))),
    'incompatible-schema',
  )

  // Each contains the one before twice: 2^24 values and zero bytes.
  let twice: object = { type: 'record', name: 'L0', fields: [{ name: 'a', type: 'null' }] }
  for (let level = 1; level <= 24; level++) {
    const fields = [
      { name: 'a', type: twice },
      { name: 'b', type: `test.L${level - 1}` },
    ]
    twice = { type: 'record', name: `L${level}`, fields }
  }
  const laughs = await written(topic, order({ name: 'twice', type: twice }, MONEY), long(5))
  const began = performance.now()
  assert.equal(await reasonOf(codec, laughs), 'incompatible-schema')
  assert.ok(performance.now() - began < 1_000)
})

test('any bytes after any of our schemas are read or refused, quickly', async () => {
  const { codec, encode } = await codecOf(
    order(MONEY, WHEN, NOTES, LINES, { name: 'text', type: ['null', 'string'], default: null }),
  )
  const header = encode({ amount: 0n }).subarray(0, 5)
  const nasty = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc
      .array(fc.constantFrom(0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff), { maxLength: 200 })
      .map((bytes) => Uint8Array.from(bytes)),
  )
  const began = performance.now()
  await fc.assert(
    fc.asyncProperty(nasty, async (bytes) => {
      const decoded = await codec.decode(Buffer.concat([header, bytes]))
      if (decoded.kind === 'undecodable') assert.equal(decoded.reason, 'bad-payload')
    }),
    { numRuns: 5_000 },
  )
  assert.ok(performance.now() - began < 10_000)
})

test('while the registry is down known schemas are read, and an unseen one is an error', async () => {
  const down = connectRegistry({ url: 'http://127.0.0.1:9' })
  const registry = connectRegistry({ url: registryUrl() })
  const one = subjectOf(order(MONEY))
  await registerSchemas(registry, [one])
  let up = true
  const codec = await openCodec(
    { ...registry, writerSchema: (...asked) => (up ? registry : down).writerSchema(...asked) },
    [one],
  )
  const bytes = codec.encoder(one.topic, 'test.Order')({ amount: 5n })
  assert.equal(await reasonOf(codec, bytes), 'decoded')
  up = false
  assert.equal(await reasonOf(codec, bytes), 'decoded')
  bytes.writeInt32BE(bytes.readInt32BE(1) + 1, 1)
  await assert.rejects(codec.decode(bytes), /could not be asked/)
})

test('the error for a value that does not fit names its fields and hides their values', async () => {
  const { encode } = await codecOf(order(MONEY, { name: 'accountNo', type: 'string' }))
  assert.throws(
    () => encode({ amount: 5n, accountNo: 50100123456789n }),
    ({ message }: Error) => {
      assert.match(message, /test\.Order does not fit its schema at: accountNo/)
      assert.doesNotMatch(message, /50100123456789/)
      return true
    },
  )
})

test('absent fields take their defaults', async () => {
  const { codec, encode } = await codecOf(order(MONEY, WHEN, NOTES, LINES))
  assert.deepEqual(await readAs(codec, encode({ amount: 5n })), {
    amount: 5n,
    at: null,
    notes: {},
    lines: [],
  })
})
