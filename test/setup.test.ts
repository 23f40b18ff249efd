import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'

const root = path.resolve(import.meta.dirname, '..')

/** A clone with its packages only, on a machine without Java. */
function cloneWithoutJava(t: TestContext) {
  const clone = mkdtempSync(path.join(tmpdir(), 'clone-'))
  t.after(() => rmSync(clone, { recursive: true }))
  for (const part of ['package.json', 'package-lock.json', 'scripts', 'devkit/local/servers']) {
    cpSync(path.join(root, part), path.join(clone, part), { recursive: true })
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(clone, 'node_modules'))
  const env = { ...process.env, JAVA_HOME: path.join(clone, 'none') }
  return (script: string) => spawnSync('npm', ['run', script], { cwd: clone, env, encoding: 'utf8' })
}

test('the sandbox and the payoutd command need only Node and packages; only commands that start servers need Java', (t) => {
  const run = cloneWithoutJava(t)
  for (const script of ['presandbox', 'prepayoutd']) {
    const { status, stderr } = run(script)
    assert.equal(status, 0, stderr)
  }
  for (const script of ['preup', 'predemo', 'pretest']) {
    const { status, stderr } = run(script)
    assert.equal(status, 1)
    assert.match(stderr, /Java 17 or later/)
  }
})
