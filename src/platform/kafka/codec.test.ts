import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AvroSchema, compile } from './avro.ts'
import { type Codec, openCodec } from './codec.ts'
import { registryUrl, unique } from './kafka.fixture.ts'
import { connectRegistry } from './registry.ts'

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
const subject = (schema: AvroSchema, topic = unique('topic')) =>
  ({ topic, schema, compatibility: 'BACKWARD_TRANSITIVE' }) as const

async function codecOf(schema: AvroSchema): Promise<{ codec: Codec; encode: (value: object) => Buffer }> {
  const one = subject(schema)
  const codec = await openCodec(connectRegistry({ url: registryUrl() }), [one])
  return { codec, encode: codec.encoder(one.topic, 'test.Order') }
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
  const older = await codecOf(order(MONEY, { name: 'dropped', type: { type: 'array', items: 'string' } }))
  const newer = await codecOf(
    order(WHEN, { name: 'added', type: ['null', 'string'], default: null }, NOTES, MONEY),
  )
  const { codec } = await codecOf(order(NOTES, MONEY, WHEN))
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

test('a writer’s int is read as our bigint, its plain long as our time', async () => {
  const writer = await codecOf(order({ name: 'amount', type: 'int' }, { name: 'at', type: 'long' }))
  const { codec } = await codecOf(order(MONEY, WHEN))
  assert.deepEqual(await readAs(codec, writer.encode({ amount: 5, at: 7n })), { amount: 5n, at: 7 })
})

test('a tombstone, foreign bytes and an unknown schema id are bad data, each by its name', async () => {
  const { codec } = await codecOf(order(MONEY))
  assert.equal(await reasonOf(codec, null), 'tombstone')
  assert.equal(await reasonOf(codec, Buffer.from('{"amount":5}')), 'not-avro')
  assert.equal(await reasonOf(codec, Buffer.from([0, 0, 0])), 'not-avro')
  assert.equal(await reasonOf(codec, Buffer.from([0, 0x7f, 0xff, 0xff, 0xfe, 2])), 'unknown-schema-id')
})

test('a record that we do not know, and one that cannot become ours, are bad data', async () => {
  const { codec } = await codecOf(order(MONEY))
  const stranger = subject({ ...order(MONEY), name: 'Stranger' })
  const other = await openCodec(connectRegistry({ url: registryUrl() }), [stranger])
  const strange = other.encoder(stranger.topic, 'test.Stranger')({ amount: 5n })
  assert.equal(await reasonOf(codec, strange), 'unknown-record')
  const withoutAmount = await codecOf(order({ name: 'other', type: 'string' }))
  assert.equal(await reasonOf(codec, withoutAmount.encode({ other: 'x' })), 'incompatible-schema')
})

test('bytes that are too few or too many for their schema are bad data', async () => {
  const { codec, encode } = await codecOf(order(MONEY, { name: 'text', type: 'string' }))
  const good = encode({ amount: 12345n, text: 'hello' })
  for (let end = 5; end < good.length; end++) {
    assert.equal(await reasonOf(codec, good.subarray(0, end)), 'bad-payload', `${end} bytes`)
  }
  assert.equal(await reasonOf(codec, Buffer.concat([good, Buffer.of(1)])), 'bad-payload')
})

test('a damaged item count is bad data at once, also in a field that we do not read', async () => {
  for (const field of [NOTES, LINES]) {
    const writer = await codecOf(order(field, MONEY))
    const bytes = writer.encode({ [field.name]: field === NOTES ? { a: 'b' } : ['a'], amount: 1n })
    const damaged = Buffer.concat([
      bytes.subarray(0, 5),
      Buffer.from([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f]),
      bytes.subarray(6),
    ])
    const reader = await codecOf(order(MONEY))
    assert.equal(await reasonOf(writer.codec, damaged), 'bad-payload')
    assert.equal(await reasonOf(reader.codec, damaged), 'bad-payload')
  }
})

test('while the registry is down known schemas are read, and an unseen one is an error', async () => {
  const schema = order(MONEY)
  const id = await connectRegistry({ url: registryUrl() }).register(subject(schema))
  const down = connectRegistry({ url: 'http://127.0.0.1:9' })
  let up = true
  const codec = await openCodec(
    {
      register: (one) => connectRegistry({ url: registryUrl() }).register(one),
      writerSchema: (asked) =>
        up && asked === id ? Promise.resolve(compile(schema)) : down.writerSchema(asked),
    },
    [],
    [schema],
  )
  const bytes = Buffer.concat([Buffer.alloc(5), compile(schema).toBuffer({ amount: 5n })])
  bytes.writeInt32BE(id, 1)
  assert.equal(await reasonOf(codec, bytes), 'decoded')
  up = false
  assert.equal(await reasonOf(codec, bytes), 'decoded')
  bytes.writeInt32BE(id + 1, 1)
  await assert.rejects(codec.decode(bytes), /could not be asked/)
})

test('a value that does not fit names its fields and hides what they hold', async () => {
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
