import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { before, test } from 'node:test'
import { PhaseTeller } from '../../devkit/local/demo/bars.ts'
import { payAndCheck } from '../../devkit/local/demo/demo.ts'
import { startInstallation } from '../../devkit/local/demo/installation.ts'
import { report } from '../../devkit/local/demo/report.ts'
import { unique } from '../../src/platform/kafka/kafka.fixture.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { Lifecycle } from '../../src/platform/running/lifecycle.ts'
import { freshDatabase } from '../../test/database.ts'

const root = path.resolve(import.meta.dirname, '..', '..')
/** The demo works below the folder that it starts in; this one keeps the JVMs' class archives. */
const folder = path.join(root, '.payoutd', 'demo-test')

before(() => mkdir(folder, { recursive: true }))

async function demo(): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const command = [path.join(root, 'bin', 'payoutd-local.ts'), 'demo', '--json']
  const child = spawn(process.execPath, command, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk) => (text.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk) => (text.stderr += chunk))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, ...text })))
}

test('the example payroll is paid correctly to the last row, on its own stack', async () => {
  const { code, stdout, stderr } = await demo()
  assert.equal(code, 0, stderr)
  const { seconds, ...figures } = JSON.parse(stdout)
  assert.ok(seconds > 0)
  assert.deepEqual(figures, {
    rows: 1000,
    accepted: 947,
    rejected: 39,
    duplicates: 14,
    paid: 941,
    failed: 6,
    review: 0,
    amountPaid: 48_601_000_00,
    fees: 941 * 500,
    paidTwice: 0,
    balanced: true,
  })
})

test('the demo does not balance, and names the row, if a row has another result than expected', async (t) => {
  const payrollPath = path.join(folder, 'two.csv')
  await writeFile(
    payrollPath,
    'reference,account_no,ifsc,amount\nA1,50100123456789,HDFC0001234,500\nA2,9999000001,HDFC0001234,700\n',
  )
  await writeFile(
    path.join(folder, 'two.expected.csv'),
    'row,reference,outcome,column,rule,why\n3,A2,paid,,,made up: this account always fails\n',
  )
  const [clock, log, lifecycle] = [systemClock, silentLogger, new Lifecycle(silentLogger)]
  const { url } = await freshDatabase(t, { migrated: false })
  const name = unique('demo')
  t.after(() => lifecycle.stop())
  const installation = await startInstallation({
    ...{ dir: path.join(folder, 'two'), fresh: true, ports: 'any', log, onStep: () => undefined },
    given: {
      DATABASE_URL: url,
      KAFKA_BROKERS: process.env.TEST_KAFKA_BROKERS,
      SCHEMA_REGISTRY_URL: process.env.TEST_SCHEMA_REGISTRY_URL,
    },
    settings: { TOPIC_PREFIX: `${name}.`, KAFKA_GROUP: name },
  })
  lifecycle.own('installation', () => installation.stop())
  const teller = new PhaseTeller(clock)
  const deps = { teller, lifecycle, clock, log, signal: t.signal }
  const outcome = await payAndCheck(installation, payrollPath, deps)
  assert.match(
    report({ ...outcome, file: 'two.csv', phases: teller.phases }),
    /NOT BALANCED: 1 .*\n.*row 3 .*must be paid .*is FAILED/,
  )
})
