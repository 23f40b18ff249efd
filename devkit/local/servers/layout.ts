import { existsSync } from 'node:fs'
import path from 'node:path'

/** Where everything of one stack lives below its directory. */
export interface Layout {
  dir: string
  /** What `fresh` deletes: databases, topics, schemas, the sandbox's books and the secrets that open them. */
  data: string
  logs: string
  /** The processes that run now. */
  pids: string
}

export function layoutOf(dir: string): Layout {
  const at = path.resolve(dir)
  return {
    dir: at,
    data: path.join(at, 'data'),
    logs: path.join(at, 'logs'),
    pids: path.join(at, 'pids'),
  }
}

const clone = path.resolve(import.meta.dirname, '../../..')

/**
 * What scripts/setup.mjs fetched for this clone; all its stacks share it and never change it. Throws if it is
 * missing.
 */
export function fetched(what: 'kafka' | 'registry'): string {
  const place = path.join(clone, '.payoutd', 'dist', what)
  if (!existsSync(place)) throw new Error(`${place} is missing: run "node scripts/setup.mjs"`)
  return place
}

/** What the JVMs save about their loaded classes at a first stop; it speeds up later starts of all stacks. */
export const classArchives = path.join(clone, '.payoutd', 'classes')

export const sandboxMain = path.join(clone, 'devkit', 'sandbox', 'main.ts')
