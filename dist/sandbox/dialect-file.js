import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { dialectJson } from "./dialect.js";
import { readGiven } from "./json-faults.js";
/**
 * The dialect of a file, as payoutd's client reads it: it holds what differs from the dialect that it `extends`,
 * which is `default`, `sandbox`, or the path of another file, relative to itself. Throws with every fault at once.
 */
export function readDialect(file) {
    const dialect = readGiven(dialectJson, read(file, []));
    if (!dialect.ok)
        throw new Error(`the dialect file ${file} is wrong: ${dialect.faults}`);
    return dialect.value;
}
function read(file, extendedBy) {
    let json;
    try {
        json = JSON.parse(readFileSync(file, 'utf8'));
    }
    catch (error) {
        throw new Error(`the dialect file ${file} cannot be read: ${error.message}`, { cause: error });
    }
    if (!isObject(json))
        throw new Error(`the dialect file ${file} is wrong: it is not a JSON object`);
    const { extends: base } = json;
    if (typeof base !== 'string' || !base.endsWith('.json'))
        return json;
    const path = resolve(dirname(file), base);
    if (extendedBy.includes(path))
        throw new Error(`the dialect file ${file} extends itself`);
    const { extends: _, ...own } = json;
    return merge(read(path, [...extendedBy, path]), own);
}
/** Objects are merged setting by setting; anything else replaces what stood there. */
function merge(base, over) {
    const merged = { ...base };
    for (const [name, value] of Object.entries(over)) {
        const before = merged[name];
        merged[name] = isObject(before) && isObject(value) ? merge(before, value) : value;
    }
    return merged;
}
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
