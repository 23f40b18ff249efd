import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { command } from '../src/domain/commands/command.fixture.ts'
import { DECISIONS } from '../src/domain/decisions.ts'
import type { OrderReport } from '../src/domain/evidence.ts'
import type { ApplyAnswer, QueryAnswer } from '../src/domain/gateway-answers.ts'
import { orderNumber } from '../src/domain/identifiers.ts'
import { paise } from '../src/domain/money.ts'
import { QUERY_POLICY } from '../src/domain/payout/payout.fixture.ts'
import { fencedMerchants } from '../src/ledger/ledger.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { claim } from '../src/stages/dispatch/claim.ts'
import { WARM } from '../src/stages/dispatch/merchant-gate.ts'
import { recordAnswers } from '../src/stages/dispatch/record-answers.ts'
import { applyEvidenceBatch, type PayoutEvidence } from '../src/stages/outcomes/outcomes.ts'
import {
  ACCOUNT,
  accepted,
  anomaliesOf,
  brokenVersions,
  payoutsOf,
  setBalance,
  testLedger,
  upsertMerchant,
} from './ledger.ts'

const MERCHANTS = ['acme', 'globex']
const POLICY = { ...QUERY_POLICY, graceMs: 1_000, duplicatesRefused: true }
const exchange = { note: 'as heard' }
const amount = paise(10_000n)

/** A standby that lacks the claims was promoted: the payouts wait again, as if they had never been sent. */
const loseClaims = sql<object>`
  with gone as (delete from attempts)
  update payouts set state = 'queued', ready = true, attempt = 0, due_at = deadline where state = 'submitting'`
/** The same for acme only; what recovery read back. */
const loseClaim = sql<object>`
  with gone as (delete from attempts where merchant_id = 'acme')
  update payouts set state = 'queued', ready = true, attempt = 0 where merchant_id = 'acme'`
const putBack = sql<object>`update attempts set owner = 'recovery', lease_until = now() where merchant_id = 'acme'`
const losePayouts = sql<object>`delete from payouts`
const clear = sql<object>`
  truncate payouts, payout_commands, history, attempts, anomalies, outbox, payments, merchants`
const kept = sql<object, { exchange: object; orderNo: string }>`select exchange, order_no from anomalies`

const { ledger, config } = await testLedger({ after })
const deps = {
  ledger,
  decisions: DECISIONS,
  queryPolicies: new Map(MERCHANTS.map((merchantId) => [merchantId, POLICY])),
  counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
  log: silentLogger,
}

const claimNext = (merchantId: string) =>
  claim(ledger, {
    ...{ merchantId, atMost: 64, owner: 'me', leaseMs: 60_000, sealing: config.sealing },
    limits: { maxInFlight: 64, ratePerSecond: null },
    fingerprintKey: config.fingerprintKey,
    account: ACCOUNT,
  })

/** When the leases of the attempts on the wire end. */
const leases = new Map<string, number>()

const afterAnUnsentAttempt = sql<{ state: string }>`
  update payouts set attempt = 1, account_id = null, state = ${'state'}, ready = ${'state'}::text = 'queued' where merchant_id = 'acme'`

/** One payout of each merchant is on the wire. */
async function onTheWire(): Promise<void> {
  await ledger.db.run(clear, {})
  await accepted(
    ledger,
    config,
    MERCHANTS.map((merchantId) => ({ ...command('p'), amount, merchantId })),
  )
  for (const merchantId of MERCHANTS) {
    await ledger.db.run(upsertMerchant, { merchantId, settingsHash: 'h', feeEstimate: 0n })
    await setBalance(ledger.db, merchantId, 10n ** 12n)
    await ledger.db.run(sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`, { warmUp: WARM })
    const { wave } = await claimNext(merchantId)
    assert.equal(wave.length, 1)
    leases.set(merchantId, wave[0]?.payout.dueAt as number)
  }
}

const answered = (merchantId: string, answer: ApplyAnswer) => ({
  ...{ merchantId, payoutId: 'p', attempt: 1, owner: 'me', leaseUntil: leases.get(merchantId) as number },
  ...{ amount: paise(10_000n), keptFee: paise(0), answer, tell: false },
})
const reported = (merchantId: string): OrderReport => ({
  ...{ mchOrderNo: orderNumber(merchantId, 'p', 1), agentpayOrderId: 'AP1', status: 'success', amount },
  ...{ fee: null, utr: '632611200001', errorMessage: null, exchange },
})
const calledBack = (merchantId: string): PayoutEvidence => {
  const report = reported(merchantId)
  return {
    merchantId,
    mchOrderNo: report.mchOrderNo,
    source: 'CALLBACK',
    report,
    accountIds: [ACCOUNT.accountId],
  }
}
const queried = (merchantId: string, answer: QueryAnswer): PayoutEvidence => {
  const { mchOrderNo } = reported(merchantId)
  const asked = { ...ACCOUNT, queryPolicy: POLICY, askedAt: 0, presence: true }
  return { merchantId, mchOrderNo, source: 'QUERY', answer, ...asked }
}

const ANSWERS: readonly ApplyAnswer[] = [
  { kind: 'accepted', agentpayOrderId: 'AP1', fee: null, status: 'processing', exchange },
  { kind: 'unknown', reason: 'timeout', exchange },
  { kind: 'refused', code: 'NO', message: 'no', exchange },
  { kind: 'retry-later', code: 'LATER', message: 'later', balanceShort: false, exchange },
  { kind: 'duplicate', code: 'DUPLICATE', exchange },
  { kind: 'not-sent', reason: 'ECONNREFUSED', exchange },
]
const accept = ANSWERS[0] as ApplyAnswer

const ALONE = ['acme']
/** The evidence is of a kind that no stranger can give, so it shows that the whole ledger was set back. */
const ALL = ['acme', 'globex']

/** payoutd sends nothing more for these merchants, and the evidence is kept. */
async function mustBeFenced(merchantIds: readonly string[]): Promise<void> {
  assert.deepEqual([...(await fencedMerchants(ledger.db))].sort(), merchantIds)
  assert.equal((await claimNext('acme')).gate.closed, 'recovering')
  assert.deepEqual(await anomaliesOf(ledger), ['never-sent'])
  const [anomaly] = await ledger.db.run(kept, {})
  assert.deepEqual(anomaly, { exchange, orderNo: orderNumber('acme', 'p', 1) })
}

describe('a ledger that lost a claim while the payout was on the wire', () => {
  for (const answer of ANSWERS) {
    test(`and learns that the apply was ${answer.kind}: the merchant is fenced, and a person decides`, async () => {
      await onTheWire()
      await ledger.db.run(loseClaims, {})
      await recordAnswers([answered('acme', answer)], deps)
      await mustBeFenced(ALL)
      const states = (await payoutsOf(ledger)).map(({ state, ready }) => [state, ready])
      assert.deepEqual(states.sort(), [
        ['queued', true],
        ['review', false],
      ])
      assert.deepEqual(await brokenVersions(ledger), [])
    })
  }

  for (const [name, evidence] of [
    ['a callback', calledBack('acme')],
    ['a query', queried('acme', { kind: 'found', report: reported('acme') })],
  ] as const) {
    test(`and learns by ${name} that it is paid: the merchant is fenced, and a person decides`, async () => {
      await onTheWire()
      await ledger.db.run(loseClaims, {})
      await applyEvidenceBatch([evidence], deps)
      await mustBeFenced(ALONE)
      assert.equal((await payoutsOf(ledger)).filter(({ state }) => state === 'review').length, 1)
    })
  }

  for (const state of ['queued', 'cancelled'])
    test(`and knows of an earlier attempt that sent nothing: a report about a ${state} payout fences the merchant`, async () => {
      await onTheWire()
      await ledger.db.run(loseClaims, {})
      await ledger.db.run(afterAnUnsentAttempt, { state })
      await applyEvidenceBatch([calledBack('acme')], deps)
      await mustBeFenced(ALONE)
      const states = (await payoutsOf(ledger)).map(({ state }) => state).sort()
      assert.deepEqual(states, state === 'queued' ? ['queued', 'review'] : ['cancelled', 'queued'])
    })

  test('accepts other reports of the same batch as usual', async () => {
    await onTheWire()
    await ledger.db.run(loseClaim, {})
    await recordAnswers([answered('globex', accept), answered('acme', accept)], deps)
    await applyEvidenceBatch([calledBack('globex'), calledBack('acme')], deps)
    assert.deepEqual([...(await fencedMerchants(ledger.db))].sort(), ALL)
    const states = (await payoutsOf(ledger)).map(({ state }) => state)
    assert.deepEqual(states.sort(), ['paid', 'review'])
  })
})

describe('a ledger that lost a claim, and in which the payout was claimed once more', () => {
  for (const answer of ANSWERS) {
    test(`does not take "${answer.kind}" as the answer to that: the merchant is fenced, and the payout on the wire`, async () => {
      await onTheWire()
      const before = answered('acme', answer)
      await ledger.db.run(loseClaim, {})
      const { wave } = await claimNext('acme')
      assert.deepEqual(
        wave.map(({ payout }) => payout.attempt),
        [1],
      )
      await recordAnswers([before], deps)
      await mustBeFenced(ALL)
      const states = (await payoutsOf(ledger)).map(({ state }) => state)
      assert.deepEqual(states, ['submitting', 'submitting'])
      await recordAnswers(
        [{ ...answered('acme', accept), leaseUntil: wave[0]?.payout.dueAt as number }],
        deps,
      )
      assert.equal((await payoutsOf(ledger)).filter(({ state }) => state === 'processing').length, 1)
    })
  }

  test('does not take such an answer as one to an attempt that a recovery put back', async () => {
    await onTheWire()
    await ledger.db.run(putBack, {})
    for (const answer of ANSWERS.filter(({ kind }) => kind !== 'accepted'))
      await recordAnswers([answered('acme', answer)], deps)
    assert.deepEqual(
      (await payoutsOf(ledger)).map(({ state }) => state),
      ['submitting', 'submitting'],
    )
    assert.deepEqual(await anomaliesOf(ledger), [])
  })
})

describe('a ledger that lost the payout itself', () => {
  test('keeps the answer to its apply, fences the merchant, and needs nothing more', async () => {
    await onTheWire()
    await ledger.db.run(losePayouts, {})
    await recordAnswers([answered('acme', accept)], deps)
    await mustBeFenced(ALL)
  })

  test('does the same with the answer to its query, whatever that is', async () => {
    for (const answer of [
      { kind: 'found', report: reported('acme') },
      { kind: 'not-found', exchange },
      { kind: 'unknown', reason: 'timeout', exchange },
    ] as const) {
      await onTheWire()
      await ledger.db.run(losePayouts, {})
      await applyEvidenceBatch([queried('acme', answer)], deps)
      assert.deepEqual([...(await fencedMerchants(ledger.db))].sort(), ALL)
      assert.deepEqual(await anomaliesOf(ledger), ['never-sent'])
    }
  })

  test('accepts a callback for any order on the account without fencing: others may use the account', async () => {
    await onTheWire()
    await ledger.db.run(losePayouts, {})
    await applyEvidenceBatch([calledBack('acme')], deps)
    assert.deepEqual([...(await fencedMerchants(ledger.db))], [])
    assert.deepEqual(await anomaliesOf(ledger), ['unknown-order'])
  })
})
