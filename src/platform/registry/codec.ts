import type avro from 'avsc'
import { everyText, hasOnlyGoodText, wellFormed } from '../../text/text.ts'
import { ExpectedFailure } from '../expected-failure.ts'
import { compile, decodeBounded, fullName, isBounded, type Resolver } from './avro.ts'
import { type NoWriterSchema, type Registry, type SchemaSubject, subjectName } from './registry.ts'

/** Why bytes are not one of our messages. The words are stable: they label metrics and dead letters. */
export type Undecodable =
  | 'tombstone'
  | 'not-avro'
  | 'unknown-schema-id'
  | 'foreign-schema'
  | 'incompatible-schema'
  | 'bad-payload'

/**
 * `value` has the fields of OUR schema of the record `name`, whatever the writer's schema has: `long` as bigint,
 * `timestamp-millis` as a number of milliseconds, null for absent. `detail` contains nothing of the content.
 */
export type Decoded =
  | { kind: 'decoded'; name: string; value: unknown }
  | { kind: 'undecodable'; reason: Undecodable; detail: string }

export type Readable = Extract<Decoded, { kind: 'decoded' }>

/**
 * For a reader of a topic that must not pass over any record: throws an ExpectedFailure if this one, at this place of the topic,
 * could not be decoded.
 */
export function demandReadable(
  decoded: Decoded,
  topic: string,
  { partition, offset }: { partition: number; offset: bigint },
): Readable {
  if (decoded.kind === 'undecodable')
    throw new ExpectedFailure(
      `${topic} has a message that payoutd cannot read: ${decoded.detail}. If payoutd wrote it, give the registry back its schema; ` +
        `otherwise find out who did, and run the command again with --leave-out ${topic}/${partition}/${offset}`,
    )
  return decoded
}

/** Whether bytes begin as every message of payoutd does. */
export const isAvro = (value: Buffer): boolean => value.length >= HEADER && value[0] === 0

/** How to read the records of one writer; `resolver` is absent if its schema is the same as ours. */
type SchemaReading = {
  name: string
  type: avro.Type
  resolver: Resolver | undefined
}

/** Magic byte and schema id (Confluent wire format). */
const HEADER = 5

/** How long the codec trusts that it cannot read an id, which may be registered for us at any moment. */
const TURNED_AWAY_MS = 1_000
const TURNED_AWAY_IDS = 1_000

/**
 * Avro in the Confluent wire format. It reads only schemas registered under our own subjects: for those the
 * registry has checked that we can. It resolves from the writer's schema to ours once per writer's schema; the
 * client's own `readerSchema` option compiles both again for every message.
 */
export class Codec {
  readonly #registry: Registry
  readonly #types: ReadonlyMap<string, avro.Type>
  /** By subject. */
  readonly #ids: ReadonlyMap<string, number>
  readonly #subjects: ReadonlySet<string>
  readonly #readings = new Map<number, SchemaReading | Decoded>()
  /** Requests in progress. */
  readonly #asked = new Map<number, Promise<SchemaReading | Decoded>>()
  readonly #turnedAway = new Map<number, { decoded: Decoded; until: number }>()

  constructor(registry: Registry, types: ReadonlyMap<string, avro.Type>, ids: ReadonlyMap<string, number>) {
    this.#registry = registry
    this.#types = types
    this.#ids = ids
    this.#subjects = new Set(ids.keys())
  }

  /**
   * A function that encodes values of one record (its full name) for one topic. If a value does not fit, it throws
   * and names the fields without their values. An absent field takes its schema's default. Text becomes
   * well-formed.
   */
  encoder<Value extends object>(topic: string, name: string): (value: Value) => Buffer {
    const type = this.#types.get(name)
    const id = this.#ids.get(`${topic}-${name}`)
    if (!type || id === undefined) throw new Error(`no schema of ${name} is registered for topic ${topic}`)
    return (value) => encode(id, type, hasOnlyGoodText(value) ? value : everyText(value, wellFormed))
  }

  /**
   * Reads the value of a record. Bytes that can never be read are a result. If it needs the registry and cannot
   * reach it, it throws, and the same bytes may be readable later.
   */
  async decode(value: Buffer | null): Promise<Decoded> {
    if (value === null) return undecodable('tombstone', 'the record has no value')
    if (!isAvro(value)) {
      return undecodable('not-avro', `no Confluent wire format: ${value.length} bytes, the first ${value[0]}`)
    }
    const id = value.readInt32BE(1)
    const reading = this.#readings.get(id) ?? (await this.#learnOnce(id))
    return 'kind' in reading ? reading : read(reading, value)
  }

  /** Callers that ask for the same id meanwhile share the same answer. */
  #learnOnce(id: number): Promise<SchemaReading | Decoded> {
    const asking = this.#asked.get(id) ?? this.#learn(id).finally(() => this.#asked.delete(id))
    this.#asked.set(id, asking)
    return asking
  }

  async #learn(id: number): Promise<SchemaReading | Decoded> {
    const before = this.#turnedAway.get(id)
    if (before && performance.now() < before.until) return before.decoded
    const writer = await this.#registry.writerSchema(id, this.#subjects)
    if (writer === 'unknown' || writer === 'foreign') return this.#turnAway(id, writer)
    const reading =
      writer === 'unreadable' || !isBounded(writer)
        ? undecodable('incompatible-schema', `schema ${id} is not valid Avro, or is without bounds`)
        : this.#readingOf(id, writer)
    this.#readings.set(id, reading)
    return reading
  }

  /** Kept only briefly: the id may be registered later, and then its records become readable. */
  #turnAway(id: number, why: Exclude<NoWriterSchema, 'unreadable'>): Decoded {
    const decoded =
      why === 'unknown'
        ? undecodable('unknown-schema-id', `the registry has no schema ${id}, or not all that it refers to`)
        : undecodable('foreign-schema', `schema ${id} is registered under no subject of ours`)
    if (this.#turnedAway.size >= TURNED_AWAY_IDS) this.#turnedAway.clear()
    this.#turnedAway.set(id, { decoded, until: performance.now() + TURNED_AWAY_MS })
    return decoded
  }

  #readingOf(id: number, writer: avro.Type): SchemaReading | Decoded {
    const name = writer.name ?? writer.typeName
    const type = this.#types.get(name)
    if (!type) return undecodable('foreign-schema', `schema ${id} is ${name}, which is no record of ours`)
    if (type.equals(writer)) return { name, type, resolver: undefined }
    try {
      return { name, type, resolver: type.createResolver(writer) }
    } catch {
      return undecodable('incompatible-schema', `schema ${id} of ${name} cannot be read with ours`)
    }
  }
}

/** Registers every subject; throws as `Registry.register` does. */
export async function registerSchemas(registry: Registry, subjects: readonly SchemaSubject[]): Promise<void> {
  for (const subject of subjects) await registry.register(subject)
}

/**
 * The codec that writes these subjects and reads what others write to them. Throws with a readable message if one
 * is not registered exactly as here.
 */
export async function openCodec(registry: Registry, subjects: readonly SchemaSubject[]): Promise<Codec> {
  const ids = new Map<string, number>()
  const missing: string[] = []
  for (const subject of subjects) {
    const id = await registry.lookUp(subject)
    if (id === null) missing.push(subjectName(subject))
    else ids.set(subjectName(subject), id)
  }
  if (missing.length > 0) {
    throw new ExpectedFailure(
      `the schema registry lacks this version's schema of ${missing.join(', ')}: run payoutd migrate, which registers it`,
    )
  }
  const types = new Map(subjects.map(({ schema }) => [fullName(schema), compile(schema)]))
  return new Codec(registry, types, ids)
}

function read({ name, type, resolver }: SchemaReading, bytes: Buffer): Decoded {
  try {
    const { value, offset } = decodeBounded(type, bytes, HEADER, resolver)
    if (offset === bytes.length) return { kind: 'decoded', name, value }
    return undecodable('bad-payload', offset < 0 ? 'truncated' : `${bytes.length - offset} bytes too many`)
  } catch (error) {
    return undecodable('bad-payload', error instanceof Error ? error.message : String(error))
  }
}

const undecodable = (reason: Undecodable, detail: string): Decoded => ({
  kind: 'undecodable',
  reason,
  detail,
})

let scratch = Buffer.alloc(16 * 1024)

function encode(id: number, type: avro.Type, value: object): Buffer {
  let end: number
  try {
    end = type.encode(value, scratch, HEADER)
  } catch {
    throw new Error(`${type.name} does not fit its schema at: ${misfits(type, value).join(', ')}`)
  }
  if (end < 0) {
    // avsc returns the number of missing bytes.
    scratch = Buffer.alloc(2 * (scratch.length - end))
    return encode(id, type, value)
  }
  scratch[0] = 0
  scratch.writeInt32BE(id, 1)
  return Buffer.from(scratch.subarray(0, end))
}

/** avsc's own error shows the value, which may be an account number. */
function misfits(type: avro.Type, value: object): string[] {
  const paths: string[] = []
  type.isValid(value, { errorHook: (path) => paths.push(path.join('.')) })
  return paths
}
