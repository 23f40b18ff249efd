import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { z } from 'zod'
import { type Dialect, dialectSchema } from './dialect.ts'

const OURS = fileURLToPath(new URL('../../../dialects/', import.meta.url))

type DialectSettings = { [name: string]: unknown }

/**
 * Reads a dialect: a built-in one by its name (`default`, `sandbox`), or the operator's own JSON file by its path. A file
 * contains only the differences from the dialect that it `extends` (a name, or a path relative to itself); `overrides` contain
 * the differences for one merchant. Objects merge setting by setting; lists and single values replace the former ones.
 * Throws a DialectError, or an Error that names a file that is missing, is not JSON, or extends itself.
 */
export function loadDialect(nameOrPath: string, overrides: DialectSettings = {}): Dialect {
  const parsed = dialectSchema.safeParse(merge(read(nameOrPath, '.', []), overrides))
  if (parsed.success) return parsed.data
  throw new DialectError(nameOrPath, parsed.error.issues.flatMap(faultsOf))
}

/**
 * Lists every wrong or missing setting at once, with its name and what it must be. Never the value: it may be a misplaced secret.
 */
export class DialectError extends Error {
  readonly faults: readonly string[]

  constructor(nameOrPath: string, faults: readonly string[]) {
    super(`dialect ${nameOrPath}: ${faults.join('; ')}`)
    this.name = 'DialectError'
    this.faults = faults
  }
}

function faultsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((name) => `${[...issue.path, name].join('.')} is unknown`)
  return [`${issue.path.join('.')} ${issue.message}`]
}

const locate = (nameOrPath: string, from: string): string =>
  nameOrPath.endsWith('.json') ? resolve(from, nameOrPath) : resolve(OURS, `${nameOrPath}.json`)

function read(nameOrPath: string, from: string, extendedBy: readonly string[]): DialectSettings {
  const file = locate(nameOrPath, from)
  if (!existsSync(file))
    throw new Error(`there is no dialect ${nameOrPath}: default, sandbox, or the path of a .json file`)
  if (extendedBy.includes(file)) throw new Error(`dialect ${file} extends itself`)
  const { extends: base, ...own } = parse(file)
  if (base === undefined) return own
  return merge(read(String(base), dirname(file), [...extendedBy, file]), own)
}

function parse(file: string): DialectSettings {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`dialect ${file} cannot be read as JSON`, { cause: error })
  }
  if (!isObject(json)) throw new Error(`dialect ${file} must be a JSON object`)
  return json
}

function merge(base: DialectSettings, over: DialectSettings): DialectSettings {
  const merged = new Map(Object.entries(base))
  for (const [name, value] of Object.entries(over)) {
    const before = merged.get(name)
    merged.set(name, isObject(before) && isObject(value) ? merge(before, value) : value)
  }
  return Object.fromEntries(merged)
}

const isObject = (value: unknown): value is DialectSettings =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
