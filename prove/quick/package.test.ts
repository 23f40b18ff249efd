import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'

const root = path.resolve(import.meta.dirname, '..', '..')

function run(file: string, args: readonly string[], input = '') {
  const { status, stdout, stderr } = spawnSync(file, args, { cwd: root, encoding: 'utf8', input })
  assert.equal(status, 0, stderr)
  return stdout
}

test('the npm package runs where it is installed, with its tables, schemas and dialects', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'package-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--silent', '--pack-destination', folder]))
  // As npm installs it: Node does not strip types below a folder of this name.
  const modules = path.join(folder, 'node_modules')
  run('mkdir', [modules])
  run('tar', ['-xzf', path.join(folder, filename), '-C', modules])
  const installed = path.join(modules, 'package')
  symlinkSync(path.join(root, 'node_modules'), path.join(installed, 'node_modules'))
  const payoutd = path.join(installed, 'dist', 'bin', 'payoutd.js')
  assert.match(run(process.execPath, [payoutd, '--help']), /^Usage: payoutd/)
  const line = '{"key":"k","params":{"a":"1"}}\n'
  const sign = ['gateway', 'sign', '--dialect', 'sandbox']
  assert.match(run(process.execPath, [payoutd, ...sign], line), /^[0-9A-F]{32}\n$/)
  const files = run('tar', ['-tzf', path.join(folder, filename)])
  for (const file of [
    'dist/src/ledger/migrations/0001_ledger.sql',
    'dist/schemas/PayoutResult.avsc',
    'schemas/PayoutResult.avsc',
  ])
    assert.ok(files.includes(`package/${file}\n`), file)
  assert.doesNotMatch(files, /\.test\.|\.fixture\.|\.env|\.payoutd/)
})
