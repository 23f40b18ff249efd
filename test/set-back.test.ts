import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { command } from '../src/domain/commands/command.fixture.ts'
import { DECISIONS } from '../src/domain/decisions.ts'
import type { ApplyAnswer } from '../src/domain/gateway-answers.ts'
import { orderNumber } from '../src/domain/identifiers.ts'
import { paise } from '../src/domain/money.ts'
import { QUERY_POLICY } from '../src/domain/payout/payout.fixture.ts'
import { fenceForLosses } from '../src/ledger/evidence/proven-losses.ts'
import { fencedMerchants, type Ledger, lockPayouts } from '../src/ledger/ledger.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { isLocked } from '../src/platform/postgres/faults.ts'
import { connectDatabase, sql } from '../src/platform/postgres/postgres.ts'
import { claim } from '../src/stages/dispatch/claim.ts'
import { recordAnswers } from '../src/stages/dispatch/record-answers.ts'
import { lockFunds } from '../src/stages/dispatch/sql/funds.ts'
import { applyEvidenceBatch } from '../src/stages/outcomes/outcomes.ts'
import { ACCOUNT, accepted, payoutsOf, setBalance, testLedger, upsertMerchant } from './ledger.ts'

const POLICY = { ...QUERY_POLICY, graceMs: 2_000, confirmations: 2 }
const amount = paise(10_000n)
const { ledger, config } = await testLedger({ after })
const { db } = ledger
const emptied = sql<object>`
  truncate merchants, payouts, payout_commands, payments, history, outbox, attempts, anomalies, intake_offsets,
    proven_losses`
const anomalies = sql<object, { kind: string }>`select kind from anomalies`
const shortWaits = sql<object>`select set_config('lock_timeout', '500ms', true)`

/** Sent and paid payouts wait again: the ledger was set back. */
beforeEach(async () => {
  await db.run(emptied, {})
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await setBalance(db, 'acme', 10n ** 12n)
  await accepted(ledger, config, [command('p', { amount })])
})

const send = (merchantId = 'acme') =>
  claim(ledger, {
    ...{ merchantId, atMost: 1, owner: 'me', leaseMs: 60_000, account: ACCOUNT },
    ...{ sealing: config.sealing, fingerprintKey: config.fingerprintKey },
    limits: { maxInFlight: 100, ratePerSecond: null },
  })

const callback = (by: Ledger) =>
  applyEvidenceBatch(
    [
      {
        ...{ merchantId: 'acme', mchOrderNo: orderNumber('acme', 'p', 1) },
        ...{ source: 'CALLBACK', accountIds: [ACCOUNT.accountId] },
        report: {
          ...{ mchOrderNo: orderNumber('acme', 'p', 1), agentpayOrderId: 'AP1', status: 'success' },
          ...{ amount, fee: null, utr: 'U1', errorMessage: null, exchange: {} },
        },
      },
    ],
    {
      ...{ ledger: by, decisions: DECISIONS, queryPolicies: new Map([['acme', POLICY]]), log: silentLogger },
      counted: new Metrics().counter('heard', 'of', ['source', 'outcome']),
    },
  )

/** Another process claims as soon as a transaction has ended in any way. `ran` is called for each of its statements. */
const amongClaims = (ran: () => void = () => undefined): Ledger => ({
  ...ledger,
  db: {
    ...db,
    async transaction(name, work) {
      try {
        return await db.transaction(name, (tx) => {
          const run: typeof tx.run = (...of) => tx.run(...of).finally(ran)
          return work({ ...tx, run })
        })
      } finally {
        await send()
      }
    },
  },
})

async function mustBeFenced(): Promise<void> {
  const [payout] = await payoutsOf(ledger)
  assert.equal(payout?.attempt, 0)
  assert.deepEqual([...(await fencedMerchants(db))], ['acme'])
  assert.deepEqual(await db.run(anomalies, {}), [{ kind: 'never-sent' }])
}

test('after evidence arrived, nobody claims a waiting payout that was already sent, however soon they look', async () => {
  await callback(amongClaims())
  await mustBeFenced()
})

test('the same holds while the holder of the merchant waits for the payout', async () => {
  const held = Promise.withResolvers<void>()
  const looks = Promise.withResolvers<void>()
  let ran = 0
  const other = db
    .transaction('test', async (tx) => {
      await tx.run(shortWaits, {})
      await tx.run(lockFunds, { merchantId: 'acme' })
      held.resolve()
      await looks.promise
      await lockPayouts(tx, [{ merchantId: 'acme', payoutId: 'p' }])
    })
    .catch((error: unknown) => {
      if (!isLocked(error)) throw error
      return 'gave way'
    })
  await held.promise
  await callback(
    amongClaims(() => {
      if (++ran > 10) looks.resolve()
    }),
  )
  assert.equal(await other, 'gave way')
  await mustBeFenced()
})

/** Every merchant of the settings, but one; the ledger has acme and other. */
const IN_SETTINGS = new Map(['acme', 'new'].map((each) => [each, POLICY]))

const answerLost = (by: Ledger = ledger) => {
  const answer: ApplyAnswer = { kind: 'unknown', reason: 'timeout', exchange: {} }
  return recordAnswers(
    [
      {
        ...{ merchantId: 'acme', payoutId: 'p', attempt: 1, owner: 'me', leaseUntil: 1, amount },
        keptFee: paise(0),
        // What it tells changes the row of the merchant, too.
        ...{ answer, tell: true },
      },
    ],
    { ledger: by, decisions: DECISIONS, log: silentLogger, queryPolicies: IN_SETTINGS },
  )
}

const queryLost = (by: Ledger = ledger) => {
  const mchOrderNo = orderNumber('acme', 'gone', 1)
  return applyEvidenceBatch(
    [
      {
        ...{ merchantId: 'acme', mchOrderNo, source: 'QUERY', ...ACCOUNT },
        ...{ queryPolicy: POLICY, askedAt: 0, presence: true },
        answer: { kind: 'not-found', exchange: {} },
      },
    ],
    {
      ...{ ledger: by, decisions: DECISIONS, queryPolicies: IN_SETTINGS, log: silentLogger },
      counted: new Metrics().counter('heard', 'of', ['source', 'outcome']),
    },
  )
}

describe('all merchants share the ledger, so they are fenced', () => {
  beforeEach(() => db.run(upsertMerchant, { merchantId: 'other', settingsHash: 'h', feeEstimate: 0n }))
  const fenced = async () => [...(await fencedMerchants(db))].sort()

  test('by the answer to an apply that the ledger does not know', async () => {
    await answerLost(amongClaims())
    assert.deepEqual(await fenced(), ['acme', 'new', 'other'])
  })

  test('by the answer to a query about a payout that is gone', async () => {
    await queryLost()
    assert.deepEqual(await fenced(), ['acme', 'new', 'other'])
  })

  test('not by a callback, which may be about an order of somebody else', async () => {
    await callback(ledger)
    assert.deepEqual(await fenced(), ['acme'])
  })

  for (const [what, lost] of [
    ['apply', answerLost],
    ['query', queryLost],
  ] as const)
    test(`while the row of one of them is held, the answer to ${what === 'apply' ? 'an apply' : 'a query'} and the others do not wait, and it sends nothing before it is fenced, too`, async () => {
      const held = Promise.withResolvers<void>()
      const over = Promise.withResolvers<void>()
      const holder = db.transaction('test', async (tx) => {
        await tx.run(lockFunds, { merchantId: 'other' })
        held.resolve()
        await over.promise
      })
      await held.promise
      const impatient = connectDatabase({
        ...{ url: config.databaseUrl, connections: 2, applicationName: 'impatient', lockTimeoutMs: 200 },
      })
      await lost({ ...ledger, db: impatient })
      await impatient.close()
      assert.deepEqual(await fenced(), ['acme', 'new'])
      over.resolve()
      await holder
      assert.equal((await send('other')).gate.closed, 'set-back')
      await fenceForLosses({ ledger, log: silentLogger, merchantIds: [] })
      assert.deepEqual(await fenced(), ['acme', 'new', 'other'])
      assert.equal((await send('other')).gate.closed, 'recovering')
    })
})
