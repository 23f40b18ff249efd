import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { ACCOUNT, accepted, payoutsOf, setBalance, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { orderNumber } from '../../domain/identifiers.ts'
import { paise } from '../../domain/money.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { claim } from './claim.ts'
import { WARM } from './merchant-gate.ts'
import { recordAnswers } from './record-answers.ts'
import { openAttempts } from './sql/claim.ts'

const exchange = {}
const unreachable: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }
const refused: ApplyAnswer = { kind: 'duplicate', code: 'DUPLICATE_ORDER', exchange }
const tooFast: ApplyAnswer = {
  ...{ kind: 'retry-later', code: 'TOO_FAST', message: '', balanceShort: false, exchange },
}
const MADE = { owner: 'me', leaseUntil: 1_800_000_000_123 }
const POLICY = { ...QUERY_POLICY, graceMs: 5_000, confirmations: 2, duplicatesRefused: true }

const endCircuit = sql<object>`update merchants set circuit_open_until = now()`

test('payoutd logs once that a circuit opens, and once that it closes again, which "later" does not do', async (t) => {
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
    attempts: ids.map((payoutId) => ({
      ...{ payoutId, attempt: 1, orderNo: orderNumber('acme', payoutId, 1) },
      claimedAt: systemClock.now(),
    })),
    settingsHash: 'h',
    ...MADE,
  })
  const lines: string[] = []
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line).msg) })
  const deps = { ledger, decisions: DECISIONS, queryPolicies: new Map([['acme', POLICY]]), log }
  const outcomes = (answer: ApplyAnswer) =>
    ids.map((payoutId) => ({
      merchantId: 'acme',
      payoutId,
      attempt: 1,
      ...MADE,
      amount: paise(10_000n),
      keptFee: paise(0),
      answer,
      tell: true,
    }))
  await recordAnswers(outcomes(unreachable), deps)
  await ledger.db.run(endCircuit, {})
  await recordAnswers(outcomes(tooFast), deps)
  assert.equal(lines.length, 1)
  await recordAnswers(outcomes(refused), deps)
  await recordAnswers(outcomes(refused), deps)
  assert.deepEqual(lines, [
    'circuit opened: payoutd sends nothing until it closes',
    'circuit closed: the gateway answers, sending continues',
  ])
})

/** A payout on the wire, and how the gateway answers an attempt of it. */
async function onTheWire(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  const { db } = ledger
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await db.run(addSettings, {})
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
  const deps = {
    ...{ ledger, decisions: DECISIONS, queryPolicies: new Map([['acme', POLICY]]) },
    log: pino({ level: 'silent' }),
  }
  const outcome = {
    merchantId: 'acme',
    payoutId: 'p',
    owner: 'me',
    leaseUntil,
    amount: paise(10_000n),
    keptFee: paise(0),
    tell: false,
  }
  return {
    ledger,
    answer: (answer: ApplyAnswer) => recordAnswers([{ ...outcome, attempt: 1, answer }], deps),
  }
}

const addSettings = sql<object>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', 'h', 'here', '', '', '', '')`
const beside = sql<{ doubted: boolean }>`update payouts set account_id = null, doubted = ${'doubted'}`
const accounts = sql<object, { accountId: string | null }>`select account_id from payouts`

test('a refusal read by settings that are no longer in force ends nothing: those in force confirm it, or do not', async (t) => {
  const { ledger, answer } = await onTheWire(t)
  await ledger.db.run(upsertMerchant, {
    merchantId: 'acme',
    settingsHash: 'adopted meanwhile',
    feeEstimate: 0n,
  })
  await answer({ kind: 'refused', code: 'IFSC_INVALID', message: 'no such branch', exchange })
  const [payout] = await payoutsOf(ledger)
  assert.deepEqual([payout?.state, payout?.reason], ['unknown', 'refused'])
})

for (const [doubted, accountId] of [
  [false, 'here'],
  [true, null],
] as const)
  test(`an answer that shows an order ${doubted ? 'does not tell' : 'tells'} the account of a payout that ${doubted ? 'may have another elsewhere' : 'had none alive'}`, async (t) => {
    const { ledger, answer } = await onTheWire(t)
    await ledger.db.run(beside, { doubted })
    await answer({ kind: 'accepted', agentpayOrderId: 'AP1', fee: null, status: 'processing', exchange })
    assert.deepEqual(await ledger.db.run(accounts, {}), [{ accountId }])
  })
