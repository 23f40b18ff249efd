import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { ACCOUNT, accepted, payoutsOf, setBalance, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { orderNumber } from '../../domain/identifiers.ts'
import { paise } from '../../domain/money.ts'
import { claim } from './claim.ts'
import { WARM } from './merchant-gate.ts'
import { recordAnswers } from './record-answers.ts'
import { openAttempts } from './sql/claim.ts'

const exchange = {}
const unreachable: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }
const refused: ApplyAnswer = { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }
const MADE = { owner: 'me', leaseUntil: 1_800_000_000_123 }
const TABLE = { queryAfterMs: [1_000], graceMs: 5_000, confirmations: 2, resendWhenAbsent: true }

test('payoutd logs once that a circuit opens, and once that it closes again', async (t) => {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  const ids = Array.from({ length: WARM }, (_, i) => `p${i}`)
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
  const deps = { ledger, decisions: DECISIONS, queryPolicies: new Map([['acme', TABLE]]), log }
  const outcomes = (answer: ApplyAnswer) =>
    ids.map((payoutId) => ({
      merchantId: 'acme',
      payoutId,
      attempt: 1,
      ...MADE,
      amount: paise(10_000n),
      answer,
      tell: true,
    }))
  await recordAnswers(outcomes(unreachable), deps)
  await recordAnswers(outcomes(refused), deps)
  await recordAnswers(outcomes(refused), deps)
  assert.deepEqual(lines, [
    'circuit opened: payoutd sends nothing until it closes',
    'circuit closed: the gateway answers, sending continues',
  ])
})

test('a refusal read by settings that are no longer in force ends nothing, and payoutd asks the gateway', async (t) => {
  const { ledger, config } = await testLedger(t)
  const { db } = ledger
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await setBalance(db, 'acme', 10n ** 12n)
  await accepted(ledger, config, [command('p')])
  const { wave } = await claim(ledger, {
    ...{
      merchantId: 'acme',
      atMost: 1,
      owner: 'me',
      leaseMs: 60_000,
      sealing: config.sealing,
      account: ACCOUNT,
    },
    ...{ fingerprintKey: config.fingerprintKey, limits: { maxInFlight: 1, ratePerSecond: null } },
  })
  const leaseUntil = wave[0]?.payout.dueAt ?? 0
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'adopted meanwhile', feeEstimate: 0n })
  const answer = {
    kind: 'refused',
    code: 'IFSC_INVALID',
    message: 'no such branch',
    vouched: true,
    exchange,
  } as const
  const outcome = {
    merchantId: 'acme',
    payoutId: 'p',
    attempt: 1,
    owner: 'me',
    leaseUntil,
    amount: paise(10_000n),
    answer,
    tell: false,
  }
  const deps = {
    ledger,
    decisions: DECISIONS,
    queryPolicies: new Map([['acme', TABLE]]),
    log: pino({ level: 'silent' }),
  }
  await recordAnswers([outcome], deps)
  const [payout] = await payoutsOf(ledger)
  assert.deepEqual([payout?.state, payout?.reason], ['unknown', 'refused'])
})
