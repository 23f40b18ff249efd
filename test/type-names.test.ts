import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const root = path.resolve(import.meta.dirname, '..')
/** Each is a separate program: the sandbox sees payins and dialects as the gateway, payoutd as its client. */
const PROGRAMS = [
  '{src,test}',
  'devkit/sandbox',
  'devkit/lab',
  'devkit/local',
  'devkit/oracle',
  'prove',
  'bench',
]
/** The domain and the platform import nothing from each other, and both use times. */
const IN_TWO = ['Instant']

const typesIn = (text: string): string[] =>
  [...text.matchAll(/^(?:export )?(?:type|interface|class) ([A-Z]\w*)/gm)].map(([, name]) => name as string)

for (const program of PROGRAMS)
  test(`in ${program} the name of a type has one meaning`, () => {
    const files = globSync(`${program}/**/*.ts`, { cwd: root })
    assert.ok(files.length > 0)
    const found = files.flatMap((file) =>
      typesIn(readFileSync(path.join(root, file), 'utf8')).map((name) => ({ name, file })),
    )
    const several = [...Map.groupBy(found, ({ name }) => name)].filter(
      ([name, places]) => places.length > 1 && !IN_TWO.includes(name),
    )
    assert.deepEqual(
      several.map(([name, places]) => `${name}: ${places.map(({ file }) => file).join(', ')}`),
      [],
    )
  })
