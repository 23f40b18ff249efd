import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { accepted, openPurse, testLedger } from '../../test/ledger.ts'
import type { ApplyAnswer } from '../payout/answers.ts'
import { command } from '../payout/command.fixture.ts'
import { orderNumber } from '../payout/identifiers.ts'
import { JUDGEMENT } from '../payout/judgement.ts'
import { RAMPED } from './pace.ts'
import { record } from './record.ts'
import { openAttempts } from './sql/claim.ts'

const exchange = {}
const unreachable: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }
const refused: ApplyAnswer = { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }
const MADE = { owner: 'me', leaseUntil: 1_800_000_000_123 }
const TABLE = { queryAfterMs: [1_000], graceMs: 5_000, confirmations: 2, resendWhenAbsent: true }

test('that a circuit opens, and that it closes again, is logged once each', async (t) => {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(openPurse, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  const ids = Array.from({ length: RAMPED }, (_, i) => `p${i}`)
  await accepted(
    ledger,
    config,
    ids.map((id) => command(id)),
  )
  await ledger.db.run(openAttempts, {
    merchantId: 'acme',
    payoutIds: ids,
    attempts: ids.map(() => 1),
    orderNos: ids.map((id) => orderNumber('acme', id, 1)),
    settingsHash: 'h',
    ...MADE,
  })
  const lines: string[] = []
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line).msg) })
  const deps = { ledger, judge: JUDGEMENT, tables: new Map([['acme', TABLE]]), log }
  const outcomes = (answer: ApplyAnswer) =>
    ids.map((payoutId) => ({ merchantId: 'acme', payoutId, attempt: 1, ...MADE, answer, tell: true }))
  await record(outcomes(unreachable), deps)
  await record(outcomes(refused), deps)
  await record(outcomes(refused), deps)
  assert.deepEqual(lines, [
    'circuit opened: nothing is sent meanwhile',
    'circuit closed: the gateway answers, so sending goes on',
  ])
})
