import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { accepted, registered, testEnvironment } from '../../test/ledger.ts'
import { openLedger } from '../app/ledger.ts'
import { ListFile } from '../batches/list-file.ts'
import { readConfig } from '../config/config.ts'
import type { AnomalyKind } from '../domain/anomaly-kinds.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { ZERO } from '../domain/money.ts'
import { anomaly, become } from '../domain/payout/transition.ts'
import { recordAct } from '../ledger/acts.ts'
import { accept, decided, submit } from '../operators/operations.fixture.ts'
import { pauseMerchant } from '../operators/pause.ts'
import { silentLogger } from '../platform/log.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { Lifecycle } from '../platform/running/lifecycle.ts'
import { payoutd } from './cli.fixture.ts'

/** Clears the screen, rings the bell, reverses the direction of writing, and begins a line that looks like payoutd's. */
const HOSTILE = 'a\u001b[2J\u0007\u009b2J\u202etxt\r\nFORGED: all is paid\u2028FORGED'
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

const refuse = sql<{ eventId: string; text: string }>`
  insert into outbox_refused (position, shard, topic, key, event_id, type, value, at, reason)
  values (1, 3, 'payout.results', ${'text'}, ${'eventId'}, 'in.payoutd.PayoutResult', '', now(), ${'text'})`
const anomalyIds = sql<object, { anomalyId: string }>`select anomaly_id::text from anomalies`

/** A ledger with hostile text in every field that an outsider or a person may write. */
async function hostileLedger(t: TestContext): Promise<{ env: NodeJS.ProcessEnv; anomalyId: string }> {
  const env = testEnvironment(await freshDatabase(t))
  const config = readConfig(env)
  const lifecycle = new Lifecycle(silentLogger)
  await registered(config)
  const { ledger } = await openLedger(config, lifecycle)
  const given = {
    accountName: HOSTILE,
    remark: HOSTILE,
    beneficiaryId: HOSTILE,
    metadata: { reference: HOSTILE },
  }
  await accepted(ledger, config, [command('p-1', given), command('p-2', given)])
  const exchange = { request: { a: HOSTILE }, response: { retMsg: HOSTILE }, note: HOSTILE }
  for (const id of ['p-1', 'p-2']) {
    await decided(ledger, id, submit)
    await decided(ledger, id, accept)
    const odd = (kind: AnomalyKind) =>
      decided(ledger, id, (payout) => anomaly(payout, 'QUERY', kind, HOSTILE, exchange))
    await odd('contradiction')
  }
  const move = (id: string, state: 'failed' | 'review') =>
    decided(ledger, id, (before) => {
      const after = become(before, state, { reason: HOSTILE, utr: HOSTILE })
      return { change: { before, after, source: 'QUERY', exchange } }
    })
  await move('p-1', 'failed')
  await move('p-2', 'review')
  const { db } = ledger
  await pauseMerchant(db, { merchantId: 'acme', by: HOSTILE, reason: HOSTILE, feeEstimate: ZERO })
  const act = { by: HOSTILE, reason: HOSTILE, command: HOSTILE, merchantId: 'acme', subjects: [HOSTILE] }
  await recordAct(db, { ...act, before: { a: HOSTILE }, after: null })
  await db.run(refuse, { eventId: randomUUID(), text: HOSTILE })
  const [first] = await db.run(anomalyIds, {})
  await lifecycle.stop()
  return { env, anomalyId: first?.anomalyId ?? '' }
}

test('no text from outside controls a terminal, or looks like a line of a command', async (t) => {
  const { env, anomalyId } = await hostileLedger(t)
  const commands = [
    ['payout', 'show', 'p-1'],
    ['payout', 'list'],
    ['payout', 'review'],
    ['anomaly', 'list'],
    ['anomaly', 'show', anomalyId],
    ['merchants'],
    ['acts', 'list'],
    ['outbox', 'list'],
    ['payout', 'show', HOSTILE],
    ['pause', 'acme', '--by', 'asha', '--reason', 'again'],
  ]
  for (const args of commands) {
    for (const mode of [[], ['--json']]) {
      const { stdout, stderr } = await payoutd([...args, ...mode], env)
      const said = stdout + stderr
      const name = [...args, ...mode].join(' ')
      assert.doesNotMatch(said, OBEYED, name)
      assert.doesNotMatch(said, /^\s*FORGED/m, name)
      assert.match(said, /FORGED/, `${name} shows nothing of it: ${said}`)
    }
  }
})

test('a list for a spreadsheet has one line for each row, no formula, and no invisible characters', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'payoutd-list-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = path.join(folder, 'list.csv')
  const list = await ListFile.open(file, 'rows', ['one', 'two'])
  const formulas = ['=1+1', '+1', '-1', '@SUM(A1)', '＝1+1', '＋1', '－1', '＠A1']
  for (const formula of formulas) await list.add([formula, HOSTILE])
  await list.add(['\t=1+1', '\r=1+1'])
  await list.complete()
  const lines = (await readFile(file, 'utf8')).split('\r\n')
  assert.equal(lines.length, formulas.length + 3)
  for (const line of lines) {
    assert.doesNotMatch(line, OBEYED)
    for (const cell of line.split(',')) assert.doesNotMatch(cell, /^"?[=+\-@＝＋－＠]/)
  }
})
