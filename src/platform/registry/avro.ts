import avro from 'avsc'

/** An Avro record schema as written in its .avsc file. */
export type AvroSchema = { type: 'record'; namespace: string; name: string; fields: unknown[] }

export const fullName = ({ namespace, name }: AvroSchema): string => `${namespace}.${name}`

type Tap = {
  buf: Buffer
  pos: number
  readLong(): number
  skipLong(): void
  readString(): string
}
export type Resolver = ReturnType<avro.Type['createResolver']>
type Inner = { _read(tap: Tap): unknown; _skip(tap: Tap): void }

/** `long` is a bigint: amounts in paise exceed what a JavaScript number holds exactly. */
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

/** The most items of all arrays and maps of one record together. None of our records has more than a few hundred. */
const MAX_ITEMS = 10_000
let itemsLeft = MAX_ITEMS

/**
 * avsc trusts the item count it reads: eight damaged bytes make it loop 2^53 times, and an item may take no bytes
 * at all (null), so one bad record would hang the process. This counts items over the whole record, before avsc
 * reads the first of a block.
 */
function count(tap: Tap): number {
  let items = tap.readLong()
  if (items < 0) {
    items = -items
    tap.skipLong()
  }
  if (!(items <= itemsLeft)) throw new Error(`more than ${MAX_ITEMS} items in one record`)
  itemsLeft -= items
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
    const entries: [string, unknown][] = []
    readBlocks(tap, () => entries.push([tap.readString(), values._read(tap)]))
    // Assigned to an object, a key such as __proto__ would not become a property.
    return Object.fromEntries(entries)
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

/**
 * Reads one record from `offset` on, as `Type.decode` does. Throws if the bytes do not fit or hold more than
 * MAX_ITEMS items.
 */
export function decodeBounded(
  type: avro.Type,
  bytes: Buffer,
  offset: number,
  resolver?: Resolver,
): { value: unknown; offset: number } {
  itemsLeft = MAX_ITEMS
  return type.decode(bytes, offset, resolver)
}

/** The most values a record may have, not counting array and map items: ours have a few dozen. */
const MAX_VALUES = 500

/**
 * Whether reading time is linear in the number of bytes. A schema can contain a record twice, and that one another
 * twice, so that zero bytes stand for 2^30 values; one that contains itself is as deep as its writer likes. No
 * schema of ours does either.
 */
export const isBounded = (schema: avro.Type): boolean => valuesIn(schema, new Map()) <= MAX_VALUES

/** The most values that one value of this type contains, counting one item of each array or map. */
function valuesIn(type: avro.Type, known: Map<avro.Type, number>): number {
  const before = known.get(type)
  if (before !== undefined) return before
  // A type that contains itself has no bound.
  known.set(type, Number.POSITIVE_INFINITY)
  const values = 1 + below(type, known)
  known.set(type, values)
  return values
}

function below(type: avro.Type, known: Map<avro.Type, number>): number {
  const { RecordType, UnwrappedUnionType, WrappedUnionType, ArrayType, MapType } = avro.types
  if (type instanceof RecordType) {
    return type.fields.reduce((sum, field) => sum + valuesIn(field.type, known), 0)
  }
  if (type instanceof UnwrappedUnionType || type instanceof WrappedUnionType) {
    return Math.max(0, ...type.types.map((one) => valuesIn(one, known)))
  }
  if (type instanceof ArrayType) return valuesIn(type.itemsType, known)
  if (type instanceof MapType) return valuesIn((type as BoundedMapType).valuesType, known)
  return 0
}

/** For every schema, ours and writers': `long` as bigint, `timestamp-millis` as number, bounded counts. */
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
