import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { command } from '../src/domain/commands/command.fixture.ts'
import type { PayoutCommand } from '../src/domain/commands/command.ts'
import { DECISIONS } from '../src/domain/decisions.ts'
import type { OrderReport } from '../src/domain/evidence.ts'
import type { ApplyAnswer, QueryAnswer } from '../src/domain/gateway-answers.ts'
import { orderNumber } from '../src/domain/identifiers.ts'
import { type Paise, paise } from '../src/domain/money.ts'
import { QUERY_POLICY } from '../src/domain/payout/payout.fixture.ts'
import { type ReadBackDeps, readBackPublished } from '../src/operators/recovery/read-back-published.ts'
import { fence, listOpen, lowerAfterRecovery, queryOpen } from '../src/operators/recovery/recovery.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { claim } from '../src/stages/dispatch/claim.ts'
import { WARM } from '../src/stages/dispatch/merchant-gate.ts'
import { recordAnswers } from '../src/stages/dispatch/record-answers.ts'
import { balanceWatermark, saveBalance } from '../src/stages/dispatch/sql/funds.ts'
import { parseCommand } from '../src/stages/intake/parse-command.ts'
import { storeCommands } from '../src/stages/intake/store-commands.ts'
import { applyEvidenceBatch } from '../src/stages/outcomes/outcomes.ts'
import { ACCOUNT, payoutsOf, testLedger, upsertMerchant } from './ledger.ts'
import { outboxMessages } from './outbox-messages.ts'
import { recoveryDeps } from './recovery-deps.ts'

const POLICY = { ...QUERY_POLICY, confirmations: 2 }
export const WHO = { by: 'asha', reason: 'disk lost' }
const amount = paise(50_000_00n)
const mchOrderNo = orderNumber('acme', 'p', 1)
const PAID = {
  ...{ mchOrderNo, agentpayOrderId: 'AP1', status: 'success' as const, amount, fee: null },
  ...{ utr: '632611200001', errorMessage: null, exchange: {} },
}
export const ABSENT: QueryAnswer = { kind: 'not-found', exchange: {} }
export const HAS_IT: QueryAnswer = { kind: 'found', report: PAID }

export type WrittenMessage = { topic: string; key: string; eventId: string; value: Buffer }
export type LostLedger = Awaited<ReturnType<typeof lostLedger>>
const outbox = sql<
  object,
  WrittenMessage
>`select topic, key, event_id, value from ${outboxMessages} order by position, n`
const loseAll = sql<object>`
  truncate payouts, payout_commands, history, attempts, anomalies, outbox, payments, reopened_payments, beneficiary_payments, holds,
    files, merchants, published_messages, recovered_payouts`
const warmUp = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`

/** A merchant whose ledger is lost, and whose maximum is now below the amount of `p`. */
export async function lostLedger(t: TestContext) {
  const { ledger, config, codec } = await testLedger(t)
  const { db } = ledger
  const counted = new Metrics().counter('evidence_total', 'test', ['source', 'outcome'])
  const deps = {
    ledger,
    decisions: DECISIONS,
    queryPolicies: new Map([['acme', POLICY]]),
    log: silentLogger,
    counted,
  }

  async function read(maxAmount: Paise | null, payoutId = 'p', fields: Partial<PayoutCommand> = {}) {
    const limits = { minAmount: null, maxAmount }
    const holds = { payPeriod: 'month' as const, holdDuplicates: true, holdChangedBeneficiaries: true }
    const terms = { limits, deadlineMs: 72 * 3_600_000, ...holds }
    const value = { ...command(payoutId, { amount, batchId: null, ...fields }) }
    const parsed = parseCommand(
      { kind: 'decoded', name: 'in.payoutd.PayoutRequested', value },
      new Map([['acme', terms]]),
    )
    assert.ok(parsed.kind === 'payout')
    const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
    await db.transaction('test', (tx) => storeCommands(tx, ledger, keys, [{ ...parsed, traceparent: null }]))
  }

  async function sendOnce(answer: ApplyAnswer) {
    const [sent] = await world.wave()
    const leaseUntil = sent?.dueAt ?? assert.fail('nothing was sent')
    await recordAnswers(
      [
        {
          merchantId: 'acme',
          payoutId: 'p',
          attempt: 1,
          owner: 'me',
          leaseUntil,
          amount: paise(10_000n),
          keptFee: paise(0),
          answer,
          tell: false,
        },
      ],
      deps,
    )
  }

  const world = {
    ...{ ledger, db, deps },
    read: (payoutId?: string, fields?: Partial<PayoutCommand>) => read(null, payoutId, fields),
    readAgain: (payoutId?: string) => read(paise(40_000_00n), payoutId),
    /** With another amount. */
    readOther: () => read(null, 'p', { amount: paise(60_000_00n) }),
    /** What dispatch would send now. */
    async wave(account = ACCOUNT) {
      const { settingsHash } = account
      await db.run(upsertMerchant, { merchantId: 'acme', settingsHash, feeEstimate: 0n })
      const [mark] = await db.run(balanceWatermark, { merchantId: 'acme' })
      assert.ok(mark)
      await db.run(saveBalance, { merchantId: 'acme', available: 10n ** 12n, ...mark })
      await db.run(warmUp, { warmUp: WARM })
      const { wave } = await claim(ledger, {
        ...{ merchantId: 'acme', atMost: 9, owner: 'me', leaseMs: 60_000, sealing: config.sealing },
        ...{ fingerprintKey: config.fingerprintKey, account },
        limits: { maxInFlight: 64, ratePerSecond: null },
      })
      return wave.map(({ payout }) => payout)
    },
    /** From a ledger that lost it. */
    async send(fields?: Partial<PayoutCommand>) {
      await read(null, 'p', fields)
      await sendOnce({
        kind: 'accepted',
        ...{ agentpayOrderId: 'AP1', fee: null, exchange: {} },
        status: 'processing',
      })
    },
    /** No byte left. */
    sendInVain: () => sendOnce({ kind: 'not-sent', reason: 'connection-refused', exchange: {} }),
    callBack: (fields: Partial<OrderReport> = {}, { accountId } = ACCOUNT) =>
      applyEvidenceBatch(
        [
          {
            ...{ merchantId: 'acme', mchOrderNo, source: 'CALLBACK', report: { ...PAID, ...fields } },
            accountIds: [accountId],
          },
        ],
        deps,
      ),
    /** To a query of payoutd. */
    answer: (status: 'success' | 'failed' | 'processing') =>
      applyEvidenceBatch(
        [
          {
            ...{ merchantId: 'acme', mchOrderNo, source: 'QUERY', ...ACCOUNT, queryPolicy: POLICY },
            answer: { kind: 'found', report: { ...PAID, status } },
            ...{ askedAt: systemClock.now(), presence: true },
          },
        ],
        deps,
      ),
    published: () => db.run(outbox, {}),
    async lose() {
      const published = await db.run(outbox, {})
      await db.run(loseAll, {})
      return published
    },
    /** Kafka's, with these messages. */
    topics: (published: readonly WrittenMessage[]): ReadBackDeps => ({
      ...{ ledger, codec },
      async readTopic(topic, onRecord) {
        for (const { key, value } of published.filter((each) => each.topic === topic))
          await onRecord({ key: Buffer.from(key), value } as never)
      },
    }),
    async raise() {
      const [raised] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
      return raised ?? assert.fail('there is no fence')
    },
    async recover(
      published: readonly WrittenMessage[],
      answer: QueryAnswer | ((mchOrderNo: string) => QueryAnswer),
      {
        listed,
        asked,
        duplicatesRefused = false,
      }: { listed?: () => Promise<void>; asked?: () => Promise<void>; duplicatesRefused?: boolean } = {},
    ) {
      const raised = await world.raise()
      await listOpen(db, raised)
      await listed?.()
      await readBackPublished(['acme'], world.topics(published))
      const presenceCheck = { found: () => undefined, holds: async () => true }
      await queryOpen(raised, {
        ...{ ...recoveryDeps(), ledger, who: WHO },
        accounts: [
          {
            ...ACCOUNT,
            queryPolicy: { ...POLICY, duplicatesRefused },
            query: async (mchOrderNo) => (typeof answer === 'function' ? answer(mchOrderNo) : answer),
            presenceCheck,
          },
        ],
      })
      await asked?.()
      assert.equal((await lowerAfterRecovery(raised, WHO, ledger)).kind, 'recovered')
    },
    now: async () =>
      (await payoutsOf(ledger)).map(({ state, version, attempt }) => [state, version, attempt].join(' ')),
    async timesTold() {
      const values = (await db.run(outbox, {})).map(({ value }) => codec.decode(value))
      return (await Promise.all(values)).map((decoded) => {
        assert.ok(decoded.kind === 'decoded')
        return (decoded.value as { occurredAt: number }).occurredAt
      })
    },
    async publishedLines() {
      const lines: string[] = []
      for (const { topic, value } of await db.run(outbox, {})) {
        const decoded = await codec.decode(value)
        assert.ok(decoded.kind === 'decoded')
        const { version, status, fromState, toState, errors } = decoded.value as Record<string, unknown>
        const rules = ((errors ?? []) as { rule: string }[]).map(({ rule }) => rule)
        if (topic === ledger.topics.events) lines.push(`${fromState} to ${toState} v${version}`)
        if (topic === ledger.topics.results) lines.push([status, `v${version}`, ...rules].join(' '))
      }
      return lines
    },
  }
  return world
}
