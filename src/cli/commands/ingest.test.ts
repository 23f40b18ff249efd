import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { copyFile, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Merchant } from '../../config/merchants.ts'
import { loadDialect } from '../../gateway/dialect/dialect-file.ts'
import { type IngestConfig, ingestCommand } from './ingest.ts'

/** A copy, because the list of refused rows is written beside the file. */
const EXAMPLE = join(await mkdtemp(join(tmpdir(), 'ingest-')), 'payroll.csv')
await copyFile(join(import.meta.dirname, '../../../examples/payroll-2026-11.csv'), EXAMPLE)
const merchant = (limits: Partial<Merchant['limits']> = {}) =>
  ({
    ...{ baseUrl: 'http://127.0.0.1:9', mchId: '1000100', key: 'k', dialect: loadDialect('sandbox') },
    ...{ formerKeys: [], formerAccounts: [] },
    limits: { minAmount: null, maxAmount: null, ...limits },
  }) as unknown as Merchant

/** No test here may connect to anything: the addresses are dead. */
const config = (...ids: string[]): IngestConfig => ({
  databaseUrl: 'postgres://127.0.0.1:9/nowhere',
  fingerprintKey: createSecretKey(Buffer.alloc(32, 7)),
  kafka: { brokers: ['127.0.0.1:9'], clientId: 'test' },
  registry: { url: 'http://127.0.0.1:9' },
  topicPrefix: '',
  merchants: new Map(ids.map((id) => [id, merchant()])),
  logLevel: 'silent',
})

async function run(
  t: TestContext,
  args: string[],
  given = config('acme'),
): Promise<{ code: unknown; out: string }> {
  const printed: string[] = []
  const log = t.mock.method(console, 'log', (text: string) => printed.push(text))
  await ingestCommand({ readConfig: () => given })
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .parseAsync(args, { from: 'user' })
  const code = process.exitCode
  process.exitCode = 0
  log.mock.restore()
  return { code, out: printed.join('\n') }
}

test('a file with refused rows ends with exit code 3, and the output says what to do', async (t) => {
  const { code, out } = await run(t, [EXAMPLE, '--batch', 'nov', '--dry-run'])
  assert.equal(code, 3)
  assert.match(out, /rows +1,000 /)
  assert.match(out, /Correct the rows and ingest the file again, or .*--publish-valid-rows/)
})

test('a dry run of the valid rows ends with 0 and one line of JSON', async (t) => {
  const { code, out } = await run(t, [
    EXAMPLE,
    '--batch',
    'nov',
    '--dry-run',
    '--publish-valid-rows',
    '--json',
  ])
  assert.equal(code, 0)
  const { kind, summary, comparison } = JSON.parse(out)
  assert.equal(kind, 'dry-run')
  assert.equal(comparison.kind, 'unknown')
  assert.match(comparison.why, /^the database 127\.0\.0\.1:9\/nowhere refuses connections/)
  assert.equal(out.includes('\n'), false)
  assert.equal(summary.all.rows, summary.payable.rows + summary.refused.rows + summary.repeated.rows)
  assert.match(summary.payable.amount, /^\d+$/)
})

test('expected totals are accepted as people write them', async (t) => {
  const { code, out } = await run(t, [
    EXAMPLE,
    '--batch',
    'nov',
    '--expect-amount',
    '₹1,00,000',
    '--expect-rows',
    '7',
  ])
  assert.equal(code, 3)
  assert.match(out, /expected 7 rows, the file has 1000/)
  assert.match(out, /expected ₹1,00,000\.00 in all/)
})

test('with several merchants, the merchant must be named', async (t) => {
  await assert.rejects(
    run(t, [EXAMPLE, '--batch', 'nov', '--dry-run'], config('acme', 'bharat')),
    /acme, bharat/,
  )
  await assert.rejects(
    run(t, [EXAMPLE, '--batch', 'nov', '--merchant', 'nobody'], config('acme')),
    /there is no merchant nobody; the settings have acme$/,
  )
})

test('a missing file, a file of another kind and a batch that cannot be an id are refused', async (t) => {
  await assert.rejects(run(t, ['nowhere.csv', '--batch', 'nov']), /no file .*nowhere\.csv/)
  const folder = dirname(EXAMPLE)
  await assert.rejects(run(t, [folder, '--batch', 'nov']), { message: `${folder} is a directory` })
  await assert.rejects(run(t, ['/dev/null', '--batch', 'nov']), /^Error: \/dev\/null is a device/)
  await assert.rejects(run(t, [EXAMPLE, '--batch', 'no v']), /1 to 64 of/)
  await assert.rejects(run(t, [EXAMPLE]), /--batch/)
  await assert.rejects(run(t, [EXAMPLE, '--batch', 'nov', '--expect-amount', '1,0000']), /commas/)
})
