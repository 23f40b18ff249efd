import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Dialect, dialectJson } from './dialect.ts'
import { readGiven } from './json-faults.ts'

type Json = { [name: string]: unknown }

/**
 * The dialect of a file, in the format of payoutd's client: it contains what differs from the dialect that it
 * `extends`, which is `default`, `sandbox`, or the path of another file, relative to itself. Throws with every
 * fault at once.
 */
export function readDialect(file: string): Dialect {
  const dialect = readGiven(dialectJson, read(file, []))
  if (!dialect.ok) throw new Error(`the dialect file ${file} is wrong: ${dialect.faults}`)
  return dialect.value
}

function read(file: string, extendedBy: readonly string[]): Json {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`the dialect file ${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  if (!isObject(json)) throw new Error(`the dialect file ${file} is wrong: it is not a JSON object`)
  const { extends: base } = json
  if (typeof base !== 'string' || !base.endsWith('.json')) return json
  const path = resolve(dirname(file), base)
  if (extendedBy.includes(path)) throw new Error(`the dialect file ${file} extends itself`)
  const { extends: _, ...own } = json
  return merge(read(path, [...extendedBy, path]), own)
}

/** Merges objects setting by setting; any other value replaces the former one. */
function merge(base: Json, over: Json): Json {
  const merged = { ...base }
  for (const [name, value] of Object.entries(over)) {
    const before = merged[name]
    merged[name] = isObject(before) && isObject(value) ? merge(before, value) : value
  }
  return merged
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
