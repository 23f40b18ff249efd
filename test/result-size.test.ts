import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { command } from '../src/domain/commands/command.fixture.ts'
import { MOST } from '../src/domain/limits.ts'
import { type Paise, paise } from '../src/domain/money.ts'
import { applyEvidence } from '../src/domain/payout/apply-evidence.ts'
import { QUERY_POLICY, sentPayout } from '../src/domain/payout/payout.fixture.ts'
import type { Change, Decision, Payout } from '../src/domain/payout/payout.ts'
import { resolve } from '../src/domain/payout/resolve.ts'
import { readOrderReport } from '../src/gateway/calls/order-report.ts'
import { type Encode, messagesAbout, reversalMessage } from '../src/messages/messages.ts'
import type { topicNames } from '../src/messages/topics.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { parseCommand } from '../src/stages/intake/parse-command.ts'
import { storeCommands } from '../src/stages/intake/store-commands.ts'
import { cutText } from '../src/text/text.ts'
import { testLedger } from './ledger.ts'
import { outboxMessages } from './outbox-messages.ts'

const MOST_BYTES = 16_000
const RUNS = 30

/** Empty, short, or far longer than accepted, in characters of one to four bytes and in characters that are escaped. */
const text = fc
  .tuple(
    fc.constantFrom('a', '1', 'é', 'क', '🙂', '"', '\u0001', '\ud800', 'a@b.', '&', ' '),
    fc.constantFrom(0, 1, 30, 64, 321, 1_025, 50_000),
  )
  .map(([part, count]) => part.repeat(count))
const TEXTS = [
  ...[
    'currency',
    'accountName',
    'accountNo',
    'bankCode',
    'ifsc',
    'vpa',
    'phoneNumber',
    'payerEmail',
    'remark',
  ],
  ...['batchId', 'beneficiaryId', 'fileHash'],
]
const fields = fc.record({
  ...Object.fromEntries(TEXTS.map((name) => [name, text])),
  amount: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  priority: fc.constantFrom(0, -(2 ** 31), 2 ** 31 - 1),
  notBefore: fc.constantFrom(null, 0, -8.64e15, 8.64e15, Date.UTC(2026, 10)),
  deadline: fc.constantFrom(null, 1, 8.64e15, Date.UTC(2026, 9)),
  metadata: fc.dictionary(text, text, { maxKeys: 5 }),
})

const sizes = sql<object, { bytes: number; type: string }>`
  select type, length(value) + length(key) + length(topic) + coalesce(length(headers::text), 0) as bytes from ${outboxMessages}`

test('the result of a refused command stays below 16 kB, whatever the command contained', async (t) => {
  const { ledger, config } = await testLedger(t)
  const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey }
  let serial = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fields, { minLength: 1, maxLength: 5 }), async (odd) => {
      const arrivals = odd.flatMap((each) => {
        const payoutId = `${'p'.repeat(58)}${serial++}`
        const value = command(payoutId, each as object)
        const read = parseCommand(
          { kind: 'decoded', name: 'in.payoutd.PayoutRequested', value },
          config.merchants,
        )
        assert.ok(read.kind === 'payout')
        return [{ ...read, traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }]
      })
      await ledger.db.transaction('test', (tx) => storeCommands(tx, ledger, keys, arrivals))
    }),
    { numRuns: RUNS },
  )
  const told = await ledger.db.run(sizes, {})
  assert.ok(told.some(({ type }) => type === 'in.payoutd.PayoutResult'))
  for (const { bytes } of told) assert.ok(bytes < MOST_BYTES, `${bytes} bytes`)
})

test('a result with text of the gateway or a person stays below 16 kB', async (t) => {
  const { ledger } = await testLedger(t)
  const { encode, topics } = ledger
  const table = { ...QUERY_POLICY, graceMs: 1 } as never
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('agentpayOrderId', 'channelPayNo', 'fee'), text),
      text,
      text,
      text,
      (odd, message, by, reason) => {
        const said = new Map(
          Object.entries({
            ...odd,
            mchOrderNo: SENT.orderNo,
            amount: String(SENT.amount),
            errorMessage: message,
          }),
        )
        for (const status of ['2', '3']) {
          const report = readOrderReport(new Map([...said, ['status', status]]), {})
          below(applyEvidence(SENT, report, 'CALLBACK', table, 0), topics, encode)
        }
        const decided = { by: cutText(by, MOST.said), reason: cutText(reason, MOST.said) }
        const review = { ...SENT, state: 'review' } as Payout
        below(resolve(review, { kind: 'failed' }, decided, 0), topics, encode)
        const reversed = reversalMessage(
          { payout: SENT, anomalyId: ANOMALY, reason: `${decided.by}: ${decided.reason}`, paidAt: 0, at: 0 },
          topics,
          encode,
        )
        assert.ok(reversed.value.length < MOST_BYTES)
      },
    ),
    { numRuns: 200 },
  )
})

const ANOMALY = '00000000-0000-5000-8000-000000000000'
const SENT = sentPayout({
  merchantId: 'm'.repeat(64),
  payoutId: 'p'.repeat(64),
  batchId: 'b'.repeat(64),
  orderNo: 'P'.repeat(30),
  amount: paise(10n ** 15n) as Paise,
  state: 'processing',
  version: 9,
  deadline: 1,
})

function below(
  decision: Decision | { refused: unknown },
  topics: ReturnType<typeof topicNames>,
  encode: Encode,
): void {
  if (!('change' in decision)) return
  const { before, after: payout, source } = decision.change as Change
  for (const { value, key } of messagesAbout(
    { payout, from: before.state, source, faults: [], at: 0 },
    topics,
    encode,
  ))
    assert.ok(value.length + key.length < MOST_BYTES, `${value.length} bytes`)
}
