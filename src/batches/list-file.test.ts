import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { Checkpoint } from './checkpoint.ts'
import { ListFile } from './list-file.ts'
import { lockPayroll } from './lock-payroll.ts'

test('if the disk has room for only a part of a list, the list is not complete and does not appear', async (t) => {
  const list = path.join(folderOf(t), 'list.csv')
  const script = `
    import { ListFile } from ${JSON.stringify(new URL('./list-file.ts', import.meta.url).href)}
    const list = await ListFile.open(${JSON.stringify(list)}, 'payouts', ['row'])
    for (let i = 0; i < 3_000; i++) await list.add(['x'.repeat(40)])
    await list.complete()`
  // 80 kB is less than the 120 kB of the list, and not a whole number of its writes.
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

test('two lists written at once under one name are each whole, and the last one stays', async (t) => {
  const folder = folderOf(t)
  const list = path.join(folder, 'list.csv')
  const lists = [await ListFile.open(list, 'payouts', ['row']), await ListFile.open(list, 'payouts', ['row'])]
  for (let i = 0; i < 10_000; i++)
    await Promise.all(lists.map((each, which) => each.add([`${which} of ${i} rows`])))
  for (const [which, each] of lists.entries()) {
    await each.complete()
    const rows = readFileSync(list, 'utf8').trimEnd().split('\r\n').slice(1)
    assert.deepEqual([rows.length, rows.every((row) => row.startsWith(`${which} of`))], [10_000, true])
  }
  assert.deepEqual(readdirSync(folder), ['list.csv'])
})

test('of the progress that two ingests keep at once, one stays', async (t) => {
  const identity = { clusterId: 'one', topic: 'commands', topicId: null, fileHash: 'h', merchantId: 'acme' }
  const checkpoint = new Checkpoint(folderOf(t), { ...identity, batchId: 'nov', referenceFrom: [] })
  const progress = { declaredAt: 0, payable: 'all' }
  await Promise.all([500, 1_000].map((published) => checkpoint.save({ ...progress, published })))
  assert.ok([500, 1_000].includes((await checkpoint.load('all'))?.published ?? 0))
})

test('the lock of a payroll ends with the process that has it, even if that is killed', async (t) => {
  const folder = folderOf(t)
  const payroll = path.join(folder, 'payroll.csv')
  writeFileSync(payroll, '')
  const script = `
    import { lockPayroll } from ${JSON.stringify(new URL('./lock-payroll.ts', import.meta.url).href)}
    await lockPayroll(${JSON.stringify(payroll)}, ${JSON.stringify(folder)})
    console.log('locked')
    process.stdin.resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script])
  await once(child.stdout, 'data')
  await assert.rejects(lockPayroll(payroll, folder), /is under way/)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const lock = await lockPayroll(payroll, folder)
  lock.release()
})

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'list-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}
