import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Crash } from './crash.ts'

export type Point = Pick<Crash, 'moment' | 'name'>

const root = path.resolve(import.meta.dirname, '..')

/** What the code calls by which name. */
const CALLS: readonly [call: RegExp, moments: readonly Crash['moment'][]][] = [
  [
    /(?:\.transaction\(|\.write\(|\bdecided\(|\bstoreEvidence\(deps,)\s*'(\w[\w ]+)'/g,
    ['before commit', 'after commit'],
  ],
  [/\bcall\(\s*'([^']+)'/g, ['before send', 'under way', 'after send']],
  [/\bcreatePublisher\(\s*'([^']+)'/g, ['before publish', 'after publish']],
]

/** Every crash point there is, read from the code itself: one that no run reaches shows as such. */
export function allPoints(): Point[] {
  const files = globSync('src/**/*.ts', { cwd: root }).filter(
    (file) => !/\.(test|fixture)\.ts$/.test(file) && !/^src\/(sandbox|devstack|demo)\//.test(file),
  )
  const code = files.sort().map((file) => readFileSync(path.join(root, file), 'utf8'))
  const points = CALLS.flatMap(([call, moments]) => {
    const names = new Set(code.flatMap((text) => [...text.matchAll(call)].map(([, name]) => name as string)))
    // A preview is rolled back: there is nothing that a crash could leave half done.
    return [...names]
      .filter((name) => !name.startsWith('preview of'))
      .sort()
      .flatMap((name) => moments.map((moment) => ({ moment, name })))
  })
  return points
}

export const inWords = ({ moment, name }: Point): string => `${moment} ${name}`
