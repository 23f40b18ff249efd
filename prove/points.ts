import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { COMMITS, PUBLISHERS, REQUESTS } from '../src/platform/running/crash-points.ts'
import type { Crash } from './crash.ts'

export type Point = Pick<Crash, 'moment' | 'name'>

const root = path.resolve(import.meta.dirname, '..')

/** The calls in the code that pass crash points. */
const CALLS: readonly {
  names: readonly Point['name'][]
  call: RegExp
  moments: readonly Point['moment'][]
}[] = [
  {
    names: COMMITS,
    call: /(?:\.transaction\(|\.write\(|\bdecided\(|\bstoreEvidence\(deps,)\s*'(\w[\w ]+)'/g,
    moments: ['before commit', 'after commit'],
  },
  { names: REQUESTS, call: /\bcall\(\s*'([^']+)'/g, moments: ['before send', 'under way', 'after send'] },
  {
    names: PUBLISHERS,
    call: /\bcreatePublisher\(\s*'([^']+)'/g,
    moments: ['before publish', 'after publish'],
  },
]

/** The code of payoutd itself. */
const product = (): string[] =>
  globSync('src/**/*.ts', { cwd: root })
    .filter((file) => !/\.(test|fixture)\.ts$/.test(file))
    .map((file) => readFileSync(path.join(root, file), 'utf8'))

/**
 * Every crash point of payoutd. Throws if a name appears at two places in the code, where a run would reach only
 * one of them and show both as tried, or at none.
 */
export function allPoints(code: readonly string[] = product()): Point[] {
  const wrong = CALLS.flatMap(({ names, call }) => {
    const called = code.flatMap((text) => [...text.matchAll(call)].map(([, name]) => name))
    return names.flatMap((name) => {
      const places = called.filter((each) => each === name).length
      return places === 1 ? [] : [`"${name}" at ${places} places`]
    })
  })
  if (wrong.length > 0) throw new Error(`a crash point stands at one place, and not ${wrong.join(', ')}`)
  return CALLS.flatMap(({ names, moments }) =>
    names.flatMap((name) => moments.map((moment) => ({ moment, name }))),
  )
}

/** Throws unless the names that runs reach are exactly the names of all points. */
export function requireTried(tried: readonly string[], points: readonly Point[]): void {
  const known = new Set(tried)
  const nobodys = points.filter(({ name }) => !known.has(name)).map(inWords)
  if (nobodys.length > 0) throw new Error(`no run would reach ${nobodys.join(', ')}`)
  const gone = [...known].filter((name) => !points.some((point) => point.name === name))
  if (gone.length > 0) throw new Error(`the code has no crash point called ${gone.join(', ')}`)
}

export const inWords = ({ moment, name }: Point): string => `${moment} ${name}`
