import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import ts from 'typescript'
import { command } from '../src/domain/commands/command.fixture.ts'
import { joined } from '../src/domain/identifiers.ts'
import { mapKey } from '../src/platform/map-key.ts'
import { storeCommands } from '../src/stages/intake/store-commands.ts'
import { payoutsOf, testLedger } from './ledger.ts'

const part = fc.string({ unit: fc.constantFrom('a', ':', '|', '1', '-', '"', '\\', ',', '\n', '/') })
const parts = fc.array(part, { maxLength: 4 })

for (const [name, key] of [
  ['mapKey', (each: string[]) => mapKey(...each)],
  ['joined', joined],
] as const) {
  test(`two lists of parts have the same key only if they are equal: ${name}`, () => {
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        assert.equal(key(one) === key(other), JSON.stringify(one) === JSON.stringify(other))
        const moved = [one.join(':'), ...other]
        assert.equal(key(moved) === key([...one, ...other]), one.length === 1)
      }),
      { numRuns: 1_000 },
    )
  })
}

test('payouts whose ids look the same when joined are two', async (t) => {
  const { ledger, config } = await testLedger(t)
  const terms = config.merchants.get('acme')
  assert.ok(terms)
  const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
  const arrivals = [
    { ...command('b:c'), merchantId: 'acme' },
    { ...command('c'), merchantId: 'acme:b' },
  ].map((each) => ({ command: each, terms, faults: [], traceparent: null }))
  const taken = await ledger.db.transaction('test', (tx) => storeCommands(tx, ledger, keys, arrivals))
  assert.deepEqual([taken.fresh.length, taken.contradicting.length], [2, 0])
  assert.equal((await payoutsOf(ledger)).length, 2)
})

/** Places that join parts by hand for good reason: the result is published, stored or signed, or HTTP requires it. */
const BY_HAND = new Set([
  'src/gateway/wire/request.ts',
  'src/stages/intake/dead-letter.ts',
  'src/stages/intake/dead-letters.ts',
  'src/messages/messages.ts',
  'src/messages/topics.ts',
  'src/doctor/kafka/registry.ts',
  'devkit/oracle/avro-reader.ts',
  'src/domain/identifiers.ts',
  'src/platform/registry/registry.ts',
])

test('no code joins parts to a key by hand', () => {
  const root = path.resolve(import.meta.dirname, '..')
  const files = globSync('src/**/*.ts', { cwd: root }).filter(
    (file) => !/\.(test|fixture)\.ts$/.test(file) && !/^src\/cli\//.test(file) && !BY_HAND.has(file),
  )
  const found = files.flatMap((file) =>
    templatesIn(readFileSync(path.join(root, file), 'utf8')).map((text) => `${file} ${text}`),
  )
  assert.deepEqual(
    [...new Set(found)].filter((each) => !BY_HAND.has(each)),
    [],
  )
})

test('the key of a payout is built in one place', () => {
  const root = path.resolve(import.meta.dirname, '..')
  const files = globSync('{bin,src,devkit,prove,bench,scripts,test}/**/*.ts', { cwd: root })
  const spelling = /\$\{[^}]*merchantId\}:\$\{[^}]*payoutId\}/
  assert.deepEqual(
    files.filter((file) => spelling.test(readFileSync(path.join(root, file), 'utf8'))),
    ['src/domain/identifiers.ts'],
  )
})

/** Template texts that consist only of values with one of `: | #` between them. */
function templatesIn(code: string): string[] {
  const source = ts.createSourceFile('code.ts', code, ts.ScriptTarget.Latest, true)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isTemplateExpression(node) && node.head.text === '') {
      const between = node.templateSpans.map(({ literal }) => literal.text)
      if (between.pop() === '' && between.length > 0 && between.every((text) => /^[:|#]$/.test(text)))
        found.push(node.getText())
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}
