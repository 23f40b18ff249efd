import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

test('a list that the disk has room for a part of only is not complete, and not there', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'list-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const list = path.join(folder, 'list.csv')
  const script = `
    import { ListFile } from ${JSON.stringify(new URL('./list-file.ts', import.meta.url).href)}
    const list = await ListFile.open(${JSON.stringify(list)}, 'payouts', ['row'])
    for (let i = 0; i < 3_000; i++) await list.add(['x'.repeat(40)])
    await list.complete()`
  // 80 kB is less than the 120 kB of the list, and no whole number of its writes.
  const limited = promisify(execFile)('bash', [
    '-c',
    'ulimit -f 80; exec "$@"',
    'bash',
    process.execPath,
    '-e',
    script,
  ])
  await assert.rejects(limited, /EFBIG/)
  assert.equal(existsSync(list), false)
})
