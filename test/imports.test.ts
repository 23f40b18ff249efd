import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'

const root = path.resolve(import.meta.dirname, '..')

/** A file, what it must not import, and the rule that forbids it. */
const FORBIDDEN = [
  ['src/text/a.ts', 'src/platform/b.ts', 'text-imports-only-what-is-below-it'],
  ['src/platform/a.ts', 'src/domain/b.ts', 'platform-imports-only-what-is-below-it'],
  ['src/domain/a.ts', 'src/platform/b.ts', 'domain-imports-only-what-is-below-it'],
  ['src/gateway/a.ts', 'src/ledger/b.ts', 'gateway-imports-only-what-is-below-it'],
  ['src/messages/a.ts', 'src/ledger/b.ts', 'messages-imports-only-what-is-below-it'],
  ['src/ledger/a.ts', 'src/stages/relay/b.ts', 'ledger-imports-only-what-is-below-it'],
  ['src/config/a.ts', 'src/ledger/b.ts', 'config-imports-only-what-is-below-it'],
  ['src/stages/intake/a.ts', 'src/stages/dispatch/b.ts', 'stages-intake-imports-only-what-is-below-it'],
  ['src/stages/dispatch/a.ts', 'src/stages/outcomes/b.ts', 'stages-dispatch-imports-only-what-is-below-it'],
  ['src/stages/outcomes/a.ts', 'src/payins/b.ts', 'stages-outcomes-imports-only-what-is-below-it'],
  ['src/stages/relay/a.ts', 'src/gateway/b.ts', 'stages-relay-imports-only-what-is-below-it'],
  ['src/payins/a.ts', 'src/queries/b.ts', 'payins-imports-only-what-is-below-it'],
  ['src/batches/a.ts', 'src/operators/b.ts', 'batches-imports-only-what-is-below-it'],
  ['src/queries/a.ts', 'src/operators/b.ts', 'queries-imports-only-what-is-below-it'],
  ['src/operators/a.ts', 'src/views/b.ts', 'operators-imports-only-what-is-below-it'],
  ['src/http/a.ts', 'src/operators/b.ts', 'http-imports-only-what-is-below-it'],
  ['src/views/a.ts', 'src/doctor/b.ts', 'views-imports-only-what-is-below-it'],
  ['src/doctor/a.ts', 'src/cli/b.ts', 'doctor-imports-only-what-is-below-it'],
  ['src/app/a.ts', 'src/cli/b.ts', 'app-imports-no-command'],
  ['src/cli/a.ts', 'devkit/lab/b.ts', 'the-product-stands-alone'],
  ['src/cli/c.ts', 'bin/b.ts', 'the-product-stands-alone'],
  ['src/elsewhere/a.ts', 'src/text/b.ts', 'every-folder-has-a-rule'],
  ['devkit/sandbox/a.ts', 'src/gateway/b.ts', 'the-sandbox-is-no-copy-of-the-client'],
  ['devkit/local/a.ts', 'prove/b.ts', 'what-judges-stands-above'],
  ['src/cli/one.ts', 'src/cli/two.ts', 'no-cycles'],
] as const

test('each import rule refuses what it is for', (t) => {
  const tree = mkdtempSync(path.join(tmpdir(), 'imports-'))
  t.after(() => rmSync(tree, { recursive: true }))
  for (const file of ['.dependency-cruiser.cjs', 'tsconfig.json'])
    cpSync(path.join(root, file), path.join(tree, file))
  const write = (file: string, text: string) => {
    mkdirSync(path.join(tree, path.dirname(file)), { recursive: true })
    writeFileSync(path.join(tree, file), text)
  }
  for (const [, to] of FORBIDDEN) write(to, 'export const it = 1\n')
  for (const [from, to] of FORBIDDEN) {
    const way = path.relative(path.dirname(from), to)
    write(from, `import { it } from '${way.startsWith('.') ? way : `./${way}`}'\nexport const own = it\n`)
  }
  write('src/cli/two.ts', "import { own } from './one.ts'\nexport const it = own\n")
  const depcruise = path.join(root, 'node_modules', '.bin', 'depcruise')
  const { stdout } = spawnSync(depcruise, ['src', 'devkit', '--output-type', 'json'], {
    cwd: tree,
    encoding: 'utf8',
  })
  const { summary } = JSON.parse(stdout) as {
    summary: { violations: { from: string; rule: { name: string } }[] }
  }
  const refused = new Set(summary.violations.map(({ from, rule }) => `${from} ${rule.name}`))
  for (const [from, , rule] of FORBIDDEN)
    assert.ok(refused.has(`${from} ${rule}`), `${rule} lets ${from} pass`)
  const tried = new Set(FORBIDDEN.map(([, , rule]) => rule as string))
  const { forbidden } = JSON.parse(
    spawnSync(process.execPath, ['-p', 'JSON.stringify(require("./.dependency-cruiser.cjs"))'], {
      cwd: root,
      encoding: 'utf8',
    }).stdout,
  ) as { forbidden: { name: string }[] }
  assert.deepEqual(
    forbidden.map(({ name }) => name).filter((name) => !tried.has(name)),
    [],
  )
})
