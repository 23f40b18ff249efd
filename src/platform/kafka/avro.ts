import avro from 'avsc'

/** An Avro record schema as it stands in its .avsc file. */
export type AvroSchema = { type: 'record'; namespace: string; name: string; fields: unknown[] }

export const fullName = ({ namespace, name }: AvroSchema): string => `${namespace}.${name}`

type Tap = {
  buf: Buffer
  pos: number
  readLong(): number
  skipLong(): void
  readString(): string
}
type Inner = { _read(tap: Tap): unknown; _skip(tap: Tap): void }

/** `long` is a bigint: amounts in paise outgrow what a JavaScript number holds exactly. */
const bigintLong = avro.types.LongType.__with({
  fromBuffer: (buffer: Buffer) => buffer.readBigInt64LE(),
  toBuffer: (value: bigint) => {
    const buffer = Buffer.allocUnsafe(8)
    buffer.writeBigInt64LE(value)
    return buffer
  },
  fromJSON: BigInt,
  toJSON: Number,
  isValid: (value: unknown) => typeof value === 'bigint' && BigInt.asIntN(64, value) === value,
  compare: (a: bigint, b: bigint) => (a === b ? 0 : a < b ? -1 : 1),
})

/** `timestamp-millis` is a number of milliseconds since the epoch, as everywhere in the product. */
const millisLong = avro.types.LongType.__with({
  fromBuffer: (buffer: Buffer) => safeInteger(buffer.readBigInt64LE()),
  toBuffer: (value: number) => {
    const buffer = Buffer.allocUnsafe(8)
    buffer.writeBigInt64LE(BigInt(value))
    return buffer
  },
  fromJSON: Number,
  toJSON: (value: number) => value,
  isValid: Number.isSafeInteger,
  compare: (a: number, b: number) => a - b,
})

function safeInteger(value: bigint): number {
  if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER)
    throw new Error('timestamp out of range')
  return Number(value)
}

/**
 * avsc believes the item count it reads, so eight damaged bytes make it loop 2^53 times: one bad record
 * would hang the process. No item of ours takes less than a byte, so a count beyond the bytes left is a lie.
 */
function count(tap: Tap): number {
  let items = tap.readLong()
  if (items < 0) {
    items = -items
    tap.skipLong()
  }
  if (items > tap.buf.length - tap.pos) throw new Error('truncated buffer')
  return items
}

function readBlocks(tap: Tap, item: (tap: Tap) => void): void {
  for (let items = count(tap); items > 0; items = count(tap)) {
    while (items-- > 0) item(tap)
  }
}

class BoundedMapType extends avro.types.MapType {
  declare readonly valuesType: avro.Type & Inner
  _read(tap: Tap): Record<string, unknown> {
    const values = this.valuesType
    const map: Record<string, unknown> = {}
    readBlocks(tap, () => {
      const key = tap.readString()
      map[key] = values._read(tap)
    })
    return map
  }
  _skip(tap: Tap): void {
    const values = this.valuesType
    readBlocks(tap, () => {
      tap.readString()
      values._skip(tap)
    })
  }
}

class BoundedArrayType extends avro.types.ArrayType {
  declare readonly itemsType: avro.Type & Inner
  _read(tap: Tap): unknown[] {
    const items = this.itemsType
    const array: unknown[] = []
    readBlocks(tap, () => array.push(items._read(tap)))
    return array
  }
  _skip(tap: Tap): void {
    const items = this.itemsType
    readBlocks(tap, () => items._skip(tap))
  }
}

/** For every schema, ours and a writer's alike: `long` as bigint, `timestamp-millis` as number, bounded counts. */
export function typeHook(schema: avro.Schema, options: object): avro.Type | undefined {
  if (schema === 'long') return bigintLong
  if (typeof schema !== 'object' || Array.isArray(schema) || !('type' in schema)) return undefined
  switch (schema.type) {
    case 'long':
      return 'logicalType' in schema && schema.logicalType === 'timestamp-millis' ? millisLong : bigintLong
    case 'map':
      return new BoundedMapType(schema, options)
    case 'array':
      return new BoundedArrayType(schema, options)
    default:
      return undefined
  }
}

export const compile = (schema: AvroSchema): avro.Type =>
  avro.Type.forSchema(schema as avro.Schema, { typeHook, omitRecordMethods: true })
