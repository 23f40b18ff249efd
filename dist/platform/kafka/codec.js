import { ExpectedFailure } from "../expected-failure.js";
import { everyText, wellFormed } from "../text.js";
import { compile, decodeBounded, fullName, isBounded } from "./avro.js";
import { subjectName } from "./registry.js";
/** Magic byte and schema id (Confluent wire format). */
const HEADER = 5;
/** How long it is believed that an id cannot be read which may be registered for us at any moment. */
const TURNED_AWAY_MS = 1_000;
const TURNED_AWAY_IDS = 1_000;
/**
 * Avro in the Confluent wire format. Only what is registered under our own subjects is read: there the registry
 * has checked that we can. Reading resolves from the writer's schema to ours, once per writer's schema; the
 * client's own `readerSchema` option compiles both again for every message.
 */
export class Codec {
    #registry;
    #types;
    /** By subject. */
    #ids;
    #subjects;
    #readings = new Map();
    #turnedAway = new Map();
    constructor(registry, types, ids) {
        this.#registry = registry;
        this.#types = types;
        this.#ids = ids;
        this.#subjects = new Set(ids.keys());
    }
    /**
     * A function that encodes values of one record (its full name) for one topic. It throws on a value that
     * does not fit, naming the fields and not what they hold. An absent field takes its schema's default. Text becomes
     * well-formed.
     */
    encoder(topic, name) {
        const type = this.#types.get(name);
        const id = this.#ids.get(`${topic}-${name}`);
        if (!type || id === undefined)
            throw new Error(`no schema of ${name} is registered for topic ${topic}`);
        return (value) => encode(id, type, everyText(value, wellFormed));
    }
    /**
     * Reads the value of a record. What can never be read is an answer; when the registry has to be asked and
     * cannot be reached, it throws, and the same bytes may be read later.
     */
    async decode(value) {
        if (value === null)
            return undecodable('tombstone', 'the record has no value');
        if (value.length < HEADER || value[0] !== 0) {
            return undecodable('not-avro', `no Confluent wire format: ${value.length} bytes, the first ${value[0]}`);
        }
        const id = value.readInt32BE(1);
        const reading = this.#readings.get(id) ?? (await this.#learn(id));
        return 'kind' in reading ? reading : read(reading, value);
    }
    async #learn(id) {
        const before = this.#turnedAway.get(id);
        if (before && performance.now() < before.until)
            return before.decoded;
        const writer = await this.#registry.writerSchema(id, this.#subjects);
        if (writer === 'unknown' || writer === 'foreign')
            return this.#turnAway(id, writer);
        const reading = writer === 'unreadable' || !isBounded(writer)
            ? undecodable('incompatible-schema', `schema ${id} is not valid Avro, or is without bounds`)
            : this.#readingOf(id, writer);
        this.#readings.set(id, reading);
        return reading;
    }
    /** Not kept for long: the id may be registered later, and then what is written with it can be read. */
    #turnAway(id, why) {
        const decoded = why === 'unknown'
            ? undecodable('unknown-schema-id', `the registry has no schema ${id}`)
            : undecodable('foreign-schema', `schema ${id} is registered under no subject of ours`);
        if (this.#turnedAway.size >= TURNED_AWAY_IDS)
            this.#turnedAway.clear();
        this.#turnedAway.set(id, { decoded, until: performance.now() + TURNED_AWAY_MS });
        return decoded;
    }
    #readingOf(id, writer) {
        const name = writer.name ?? writer.typeName;
        const type = this.#types.get(name);
        if (!type)
            return undecodable('foreign-schema', `schema ${id} is ${name}, which is no record of ours`);
        if (type.equals(writer))
            return { name, type, resolver: undefined };
        try {
            return { name, type, resolver: type.createResolver(writer) };
        }
        catch {
            return undecodable('incompatible-schema', `schema ${id} of ${name} cannot be read with ours`);
        }
    }
}
/** Registers every subject: see `Registry.register` for what it throws. */
export async function registerSchemas(registry, subjects) {
    for (const subject of subjects)
        await registry.register(subject);
}
/**
 * The codec that writes these subjects and reads what others write to them. Throws, in words, when one is not
 * registered as it stands here.
 */
export async function openCodec(registry, subjects) {
    const ids = new Map();
    const missing = [];
    for (const subject of subjects) {
        const id = await registry.lookUp(subject);
        if (id === null)
            missing.push(subjectName(subject));
        else
            ids.set(subjectName(subject), id);
    }
    if (missing.length > 0) {
        throw new ExpectedFailure(`the schema registry lacks this version's schema of ${missing.join(', ')}: run payoutd migrate, which registers it`);
    }
    const types = new Map(subjects.map(({ schema }) => [fullName(schema), compile(schema)]));
    return new Codec(registry, types, ids);
}
function read({ name, type, resolver }, bytes) {
    try {
        const { value, offset } = decodeBounded(type, bytes, HEADER, resolver);
        if (offset === bytes.length)
            return { kind: 'decoded', name, value };
        return undecodable('bad-payload', offset < 0 ? 'truncated' : `${bytes.length - offset} bytes too many`);
    }
    catch (error) {
        return undecodable('bad-payload', error instanceof Error ? error.message : String(error));
    }
}
const undecodable = (reason, detail) => ({
    kind: 'undecodable',
    reason,
    detail,
});
let scratch = Buffer.alloc(16 * 1024);
function encode(id, type, value) {
    let end;
    try {
        end = type.encode(value, scratch, HEADER);
    }
    catch {
        throw new Error(`${type.name} does not fit its schema at: ${misfits(type, value).join(', ')}`);
    }
    if (end < 0) {
        // avsc answers with how many bytes were missing.
        scratch = Buffer.alloc(2 * (scratch.length - end));
        return encode(id, type, value);
    }
    scratch[0] = 0;
    scratch.writeInt32BE(id, 1);
    return Buffer.from(scratch.subarray(0, end));
}
/** avsc's own error shows the value, which may be an account number. */
function misfits(type, value) {
    const paths = [];
    type.isValid(value, { errorHook: (path) => paths.push(path.join('.')) });
    return paths;
}
