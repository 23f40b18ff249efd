import avro from 'avsc';
export const fullName = ({ namespace, name }) => `${namespace}.${name}`;
/** `long` is a bigint: amounts in paise outgrow what a JavaScript number holds exactly. */
const bigintLong = avro.types.LongType.__with({
    fromBuffer: (buffer) => buffer.readBigInt64LE(),
    toBuffer: (value) => {
        const buffer = Buffer.allocUnsafe(8);
        buffer.writeBigInt64LE(value);
        return buffer;
    },
    fromJSON: BigInt,
    toJSON: Number,
    isValid: (value) => typeof value === 'bigint' && BigInt.asIntN(64, value) === value,
    compare: (a, b) => (a === b ? 0 : a < b ? -1 : 1),
});
/** `timestamp-millis` is a number of milliseconds since the epoch, as everywhere in the product. */
const millisLong = avro.types.LongType.__with({
    fromBuffer: (buffer) => safeInteger(buffer.readBigInt64LE()),
    toBuffer: (value) => {
        const buffer = Buffer.allocUnsafe(8);
        buffer.writeBigInt64LE(BigInt(value));
        return buffer;
    },
    fromJSON: Number,
    toJSON: (value) => value,
    isValid: Number.isSafeInteger,
    compare: (a, b) => a - b,
});
function safeInteger(value) {
    if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER)
        throw new Error('timestamp out of range');
    return Number(value);
}
/** Items of all arrays and maps of one record together. None of ours has more than some hundreds. */
const MAX_ITEMS = 10_000;
let itemsLeft = MAX_ITEMS;
/**
 * avsc believes the item count it reads, so eight damaged bytes make it loop 2^53 times, and an item may take no
 * byte at all (null): one bad record would hang the process. So items are counted, over the whole record and
 * before the first of a block is read.
 */
function count(tap) {
    let items = tap.readLong();
    if (items < 0) {
        items = -items;
        tap.skipLong();
    }
    if (!(items <= itemsLeft))
        throw new Error(`more than ${MAX_ITEMS} items in one record`);
    itemsLeft -= items;
    return items;
}
function readBlocks(tap, item) {
    for (let items = count(tap); items > 0; items = count(tap)) {
        while (items-- > 0)
            item(tap);
    }
}
class BoundedMapType extends avro.types.MapType {
    _read(tap) {
        const values = this.valuesType;
        const map = {};
        readBlocks(tap, () => {
            const key = tap.readString();
            map[key] = values._read(tap);
        });
        return map;
    }
    _skip(tap) {
        const values = this.valuesType;
        readBlocks(tap, () => {
            tap.readString();
            values._skip(tap);
        });
    }
}
class BoundedArrayType extends avro.types.ArrayType {
    _read(tap) {
        const items = this.itemsType;
        const array = [];
        readBlocks(tap, () => array.push(items._read(tap)));
        return array;
    }
    _skip(tap) {
        const items = this.itemsType;
        readBlocks(tap, () => items._skip(tap));
    }
}
/**
 * Reads one record from `offset` on, as `Type.decode` does. Throws where the bytes do not fit, or hold more than
 * MAX_ITEMS items.
 */
export function decodeBounded(type, bytes, offset, resolver) {
    itemsLeft = MAX_ITEMS;
    return type.decode(bytes, offset, resolver);
}
/** What a record may consist of before any array or map in it is opened: ours have some dozens. */
const MAX_VALUES = 500;
/**
 * Whether reading takes no longer than the bytes are many: a schema can name a record twice in the next one, and
 * that twice again, so that no byte at all stands for 2^30 values, and one that holds itself is as deep as its
 * writer likes. No schema of ours does either.
 */
export const isBounded = (schema) => valuesIn(schema, new Map()) <= MAX_VALUES;
/** How many values one value of this type has in it at most, each item of an array or map by itself. */
function valuesIn(type, known) {
    const before = known.get(type);
    if (before !== undefined)
        return before;
    // Found again below itself: without a bound.
    known.set(type, Number.POSITIVE_INFINITY);
    const values = 1 + below(type, known);
    known.set(type, values);
    return values;
}
function below(type, known) {
    const { RecordType, UnwrappedUnionType, WrappedUnionType, ArrayType, MapType } = avro.types;
    if (type instanceof RecordType) {
        return type.fields.reduce((sum, field) => sum + valuesIn(field.type, known), 0);
    }
    if (type instanceof UnwrappedUnionType || type instanceof WrappedUnionType) {
        return Math.max(0, ...type.types.map((one) => valuesIn(one, known)));
    }
    if (type instanceof ArrayType)
        return valuesIn(type.itemsType, known);
    if (type instanceof MapType)
        return valuesIn(type.valuesType, known);
    return 0;
}
/** For every schema, ours and a writer's alike: `long` as bigint, `timestamp-millis` as number, bounded counts. */
export function typeHook(schema, options) {
    if (schema === 'long')
        return bigintLong;
    if (typeof schema !== 'object' || Array.isArray(schema) || !('type' in schema))
        return undefined;
    switch (schema.type) {
        case 'long':
            return 'logicalType' in schema && schema.logicalType === 'timestamp-millis' ? millisLong : bigintLong;
        case 'map':
            return new BoundedMapType(schema, options);
        case 'array':
            return new BoundedArrayType(schema, options);
        default:
            return undefined;
    }
}
export const compile = (schema) => avro.Type.forSchema(schema, { typeHook, omitRecordMethods: true });
