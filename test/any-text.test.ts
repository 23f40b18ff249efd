import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type avro from 'avsc'
import fc from 'fast-check'
import { readColumns } from '../src/batches/file/format.ts'
import { readRow } from '../src/batches/file/row.ts'
import type { Merchant } from '../src/config/merchants.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { DECISIONS } from '../src/domain/decisions.ts'
import { paise, ZERO } from '../src/domain/money.ts'
import type { Payout } from '../src/domain/payout/payout.ts'
import { parsePayinCallback, parsePayoutCallback } from '../src/gateway/callbacks/callback.ts'
import { readApplyAnswer } from '../src/gateway/calls/apply-answer.ts'
import { readPayinCreateAnswer } from '../src/gateway/calls/payin-create-answer.ts'
import { readQueryAnswer } from '../src/gateway/calls/query-answer.ts'
import { answered, DIALECT } from '../src/gateway/testing.ts'
import { exchangeOf } from '../src/gateway/wire/exchange.ts'
import { signature } from '../src/gateway/wire/sign.ts'
import { readBody } from '../src/gateway/wire/verify-answer.ts'
import { cancelPayouts } from '../src/operators/cancel-payouts.ts'
import { pauseMerchant, resumeMerchant } from '../src/operators/pause.ts'
import { createPayin } from '../src/payins/collect.ts'
import { applyPayinEvidenceBatch as settlePayins } from '../src/payins/outcomes.ts'
import { findPayin } from '../src/payins/story.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { compile } from '../src/platform/registry/avro.ts'
import { readSchemas } from '../src/platform/registry/schemas.ts'
import { claim } from '../src/stages/dispatch/claim.ts'
import { WARM } from '../src/stages/dispatch/merchant-gate.ts'
import { recordAnswers } from '../src/stages/dispatch/record-answers.ts'
import { Intake, type IntakeDeps } from '../src/stages/intake/intake.ts'
import { applyEvidenceBatch } from '../src/stages/outcomes/outcomes.ts'
import { everyText, wellFormed } from '../src/text/text.ts'
import { ACCOUNT, accepted, setBalance, standAt, upsertMerchant } from './ledger.ts'
import { outboxMessages } from './outbox-messages.ts'
import { POLICY, payinLedger, REQUEST } from './payins.ts'

/** Any UTF-16 text, and text that breaks a NUL-terminated string, a JSON escape or an index. */
const anyText = fc.oneof(
  { arbitrary: fc.string({ unit: 'binary' }), weight: 3 },
  {
    arbitrary: fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
    weight: 3,
  },
  fc.constantFrom(
    '\0',
    '\ud800',
    '\udc00x',
    '\\u0000',
    '\\ud800',
    '\\\\u0000\0',
    `${'x'.repeat(299)}🙂`,
    'é'.repeat(20_000),
  ),
  fc.constantFrom('a&status=3', '{"a":"\\u0000"}', '__proto__', '{a,"b', 'constructor'),
)
const RUNS = 25
/** Processed together, as a stage does. */
const MOST = 8
const several = <T>(texts: fc.Arbitrary<T>, check: (values: readonly T[]) => Promise<void>) =>
  fc.assert(fc.asyncProperty(fc.array(texts, { minLength: 1, maxLength: MOST }), check), { numRuns: RUNS })

/** The ledger's contents: text that breaks reading or publishing would show here. */
const stored = sql<object, { history: bigint; anomalies: bigint; outbox: bigint }>`
  select (select count(*) from history where exchange::text is not null or true) as history,
    (select count(*) from anomalies where length(detail || coalesce(exchange::text, '')) >= 0) as anomalies,
    (select count(*) from ${outboxMessages} where length(value) > 0) as outbox`
const messages = sql<{ after: bigint }, { position: bigint; topic: string; value: Buffer }>`
  select position, topic, value from ${outboxMessages} where position > ${'after'} and type like 'in.payoutd.P%' order by position, n`
const fullSpeed = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`

/** An answer of the gateway with these fields, to a request with this text. */
function heard(fields: Record<string, unknown>, text: string) {
  const reply = answered(JSON.stringify(fields))
  const { text: body, fields: read } = readBody(reply)
  return {
    heard: {
      kind: 'answer',
      retCode: String(fields.retCode ?? 'SUCCESS'),
      fields: read ?? new Map(),
    } as const,
    exchange: exchangeOf(new Map([['remark', text]]), reply, body, read, []),
  }
}

function signedQuery(fields: Record<string, string | null>, { key, dialect }: Merchant): string {
  const given = Object.entries(fields).map(([name, value]) => [name, (value ?? '').toWellFormed()] as const)
  const sign = signature(new Map(given), key, dialect.sign, 'callbacks')
  return new URLSearchParams({ ...Object.fromEntries(given), sign }).toString()
}

describe('arbitrary text', () => {
  let world: Awaited<ReturnType<typeof start>>
  const ends: (() => Promise<void>)[] = []
  before(async () => {
    world = await start()
  })
  after(async () => {
    for (const end of ends.reverse()) await end()
  })

  async function start() {
    const { ledger, config, codec, collect, outcomeDeps } = await payinLedger({
      after: (end: () => Promise<void>) => void ends.push(end),
    } as never)
    await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
    await setBalance(ledger.db, 'acme', 10n ** 17n)
    await ledger.db.run(fullSpeed, { warmUp: WARM })
    const counted = new Metrics().counter('commands_total', 'test', ['outcome'])
    const outcomes = async (): Promise<Record<string, number>> =>
      Object.fromEntries((await counted.get()).values.map(({ labels, value }) => [labels.outcome, value]))
    const intake: IntakeDeps = {
      ledger,
      terms: config.merchants,
      keys: { sealing: config.sealing, fingerprint: config.fingerprintKey },
      decode: (value) => codec.decode(value),
      log: silentLogger,
      counted,
    }
    const schemas = readSchemas('schemas')
    let offset = 0n
    await standAt(ledger, 0, { offset, logId: null })
    let serial = 0
    /** Each record with its exact bytes, whatever the codec would do to the text. */
    const take = async (name: string, values: readonly object[], headers: Record<string, Buffer> = {}) => {
      const type = compile(schemas.get(name)?.schema as never)
      const ours = codec.encoder<object>(ledger.topics.commands, `in.payoutd.${name}`)
      const header = ours(type.random() as object).subarray(0, 5)
      const from = offset
      offset += BigInt(values.length)
      await new Intake(intake).process({
        topic: ledger.topics.commands,
        partition: 0,
        nextOffset: offset,
        stored: { offset: from, logId: null },
        records: values.map((value, i) => ({
          offset: from + BigInt(i),
          key: null,
          value: Buffer.concat([header, (type as avro.Type).toBuffer(value)]),
          headers,
          timestamp: 0,
        })),
      })
    }
    const merchant = config.merchants.get('acme')
    assert.ok(merchant)
    const sent = async (count: number) => {
      const commands = Array.from({ length: count }, () => command(`sent-${serial++}`))
      await accepted(ledger, config, commands)
      const { wave } = await claim(ledger, {
        merchantId: 'acme',
        atMost: count,
        owner: 'me',
        leaseMs: 60_000,
        limits: { maxInFlight: 1_000_000, ratePerSecond: null },
        sealing: config.sealing,
        fingerprintKey: config.fingerprintKey,
        account: ACCOUNT,
      })
      return wave.map(({ payout }) => payout)
    }
    return {
      ...{ ledger, config, codec, collect, outcomeDeps, take, outcomes, merchant, sent },
      evidence: {
        ledger,
        decisions: DECISIONS,
        queryPolicies: new Map([['acme', POLICY]]),
        counted: outcomeDeps.counted,
        log: silentLogger,
      },
      next: () => `any-${serial++}`,
    }
  }

  test('in commands: each is accepted, rejected or dead-lettered, and its neighbour goes on', async () => {
    const { take, outcomes, next } = world
    const good = await outcomes()
    let asked = 0
    const fields = fc.record(
      {
        currency: anyText,
        accountName: anyText,
        accountNo: anyText,
        bankCode: anyText,
        ifsc: anyText,
        vpa: anyText,
        phoneNumber: anyText,
        payerEmail: anyText,
        remark: anyText,
        batchId: anyText,
        beneficiaryId: anyText,
        fileHash: anyText,
        payoutId: anyText,
        metadata: fc.dictionary(anyText, anyText),
      },
      { requiredKeys: [] },
    )
    await several(fc.tuple(fields, anyText), async (all) => {
      const headers = Object.fromEntries(all.map(([, text]) => [text, Buffer.from(text)]))
      const traceparent = Buffer.from(all.map(([, text]) => text).join(''))
      const values = all.flatMap(([odd]) => [{ ...command(next()), ...odd }, command(next())])
      await take('PayoutRequested', values, { ...headers, traceparent })
      asked += values.length
    })
    const told = await outcomes()
    const sum = Object.entries(told).reduce((all, [name, value]) => all + value - (good[name] ?? 0), 0)
    assert.equal(sum, asked)
    assert.ok((told.accepted ?? 0) >= RUNS)
  })

  test('in cancellations and declarations: a good command in the same batch is accepted', async () => {
    const { take, outcomes, next } = world
    const accepted = async () => (await outcomes()).accepted ?? 0
    const begun = await accepted()
    await several(fc.tuple(anyText, anyText, anyText), async (all) => {
      const id = next()
      const cancels = all.map(([payoutId, reason, requestedBy], i) => ({
        ...{ merchantId: 'acme', payoutId: i === 0 ? id : payoutId },
        ...{ reason, requestedBy },
      }))
      await take('PayoutRequested', [command(id)])
      await take('PayoutCancelRequested', cancels)
      const batch = { merchantId: 'acme', rows: 1, amount: 100n, refused: 0, declaredAt: Date.now() }
      await take(
        'PayoutBatchDeclared',
        all.flatMap(([batchId, fileHash, other]) => [
          { ...batch, batchId, fileHash },
          { ...batch, batchId: 'b', fileHash: other },
        ]),
      )
    })
    assert.ok((await accepted()) - begun >= RUNS)
  })

  test('in answers to apply, queries and callbacks: the evidence is stored', async () => {
    const { ledger, sent, evidence, merchant } = world
    const stage = { ledger, decisions: DECISIONS, queryPolicies: evidence.queryPolicies, log: silentLogger }
    await several(fc.tuple(anyText, anyText), async (all) => {
      const payouts = await sent(all.length)
      const answers = all.map(([name, text], i) => {
        const { merchantId, payoutId, attempt, dueAt, orderNo, amount } = payouts[i] as Payout
        const made = { attempt, owner: 'me', leaseUntil: dueAt as number }
        const said = (fields: Record<string, unknown>) =>
          heard({ [name]: text, errorMessage: text, retMsg: text, ...fields }, text)
        const refusal = said({ retCode: 'REFUSED' })
        const answer = readApplyAnswer(refusal.heard, DIALECT.retCodes.apply, [], refusal.exchange)
        const report = { mchOrderNo: orderNo, status: 3, amount: String(amount) }
        const found = said({ retCode: 'SUCCESS', ...report })
        const by = { mchOrderNo: orderNo as string }
        const vouched = { accountIds: [ACCOUNT.accountId] }
        const asked = { ...ACCOUNT, queryPolicy: POLICY, askedAt: Date.now(), presence: false }
        const query = readQueryAnswer(found.heard, by, DIALECT.retCodes.query, found.exchange)
        const fields = { ...report, status: '3', errorMessage: text }
        return {
          outcome: {
            merchantId,
            payoutId,
            ...made,
            amount: paise(10_000n),
            keptFee: paise(0),
            answer,
            tell: false,
          },
          evidence: [
            { merchantId, ...by, source: 'QUERY' as const, answer: query, ...asked },
            ...[fields, { ...fields, mchOrderNo: text }].flatMap((each) => {
              const read = parsePayoutCallback(signedQuery(each, merchant), merchant.dialect, merchant.key)
              if (read.kind !== 'verified') return []
              const { mchOrderNo } = read.report
              return [
                { merchantId, mchOrderNo, source: 'CALLBACK' as const, report: read.report, ...vouched },
              ]
            }),
          ],
        }
      })
      await recordAnswers(
        answers.map(({ outcome }) => outcome),
        stage,
      )
      await applyEvidenceBatch(
        answers.flatMap(({ evidence: each }) => each),
        evidence,
      )
    })
  })

  test('in payins: requests, answers and callbacks are stored', async () => {
    const { ledger, collect, outcomeDeps, merchant } = world
    const collector = collect.collectors.get('acme')
    assert.ok(collector)
    await several(fc.tuple(anyText, anyText), async (all) => {
      const evidence = []
      for (const [idempotencyKey, text] of all) {
        const said = heard(
          { payOrderId: 'PO1', payParams: { payUrl: text, [text]: text }, [text]: text },
          text,
        )
        const create = async () =>
          readPayinCreateAnswer(said.heard, DIALECT.retCodes.payinCreate, [], said.exchange)
        const request = { ...REQUEST, remark: text, accountName: text }
        const created = await createPayin(
          { merchantId: 'acme', idempotencyKey, request, traceparent: null },
          { ...collect, collectors: new Map([['acme', { ...collector, create }]]) },
        )
        const payinId = 'payin' in created ? created.payin.payinId : text
        const fields = {
          mchOrderNo: text,
          status: '3',
          amount: '50000',
          errorMessage: text,
          voucherMap: text,
        }
        const read = parsePayinCallback(signedQuery(fields, merchant), merchant.dialect, merchant.key)
        if (read.kind === 'verified')
          evidence.push({
            merchantId: 'acme',
            payinId,
            source: 'CALLBACK' as const,
            ...read,
            accountIds: [ACCOUNT.accountId],
          })
        await findPayin(ledger.db, { merchantId: 'acme', payinId: text })
      }
      await settlePayins(evidence, outcomeDeps)
    })
  })

  test('in a person’s reasons: the act is stored', async () => {
    const { ledger, sent } = world
    await several(fc.tuple(anyText, anyText), async ([[by, reason] = ['', '']]) => {
      const [payout] = await sent(1)
      assert.ok(payout)
      await cancelPayouts({ merchantId: 'acme', payoutIds: [payout.payoutId, reason], by, reason }, ledger)
      await pauseMerchant(ledger.db, { merchantId: 'acme', by, reason, feeEstimate: ZERO })
      await resumeMerchant(ledger.db, { merchantId: 'acme', by, reason })
    })
  })

  test('in file cells: a row is payable or refused, and its command is accepted', async () => {
    const { take } = world
    const names = [
      'reference',
      'account_name',
      'account_no',
      'ifsc',
      'amount',
      'remark',
      'meta_team',
      'email',
      'vpa',
    ]
    const header = readColumns(names, [])
    assert.ok(!('faults' in header))
    const batch = { merchantId: 'acme', batchId: 'file', limits: { minAmount: null, maxAmount: null } }
    const good = ['', 'Asha Rao', '50100123456789', 'HDFC0001234', '500', '', '', '', '']
    const odd = fc.array(fc.option(anyText, { nil: null }), {
      minLength: names.length,
      maxLength: names.length,
    })
    await several(odd, async (all) => {
      const rows = all.map((cells, i) => {
        const written = cells.map((cell, column) => cell ?? (good[column] as string))
        return readRow(written, i + 2, header, batch)
      })
      for (const row of rows)
        if (row.kind === 'refused') assert.ok(JSON.stringify(row.faults).length < 16_384)
      await take(
        'PayoutRequested',
        rows.flatMap((row) => (row.kind === 'payable' ? [row.command] : [])),
      )
    })
  })

  test('all of it can be read again, and published text is well-formed', async () => {
    const { ledger, codec } = world
    const [counts] = await ledger.db.run(stored, {})
    assert.ok(counts && counts.history > 0n && counts.outbox > 0n)
    for (let position = 0n; ; ) {
      const rows = await ledger.db.run(messages, { after: position })
      if (rows.length === 0) break
      for (const { value } of rows) {
        const decoded = await codec.decode(value)
        assert.equal(decoded.kind, 'decoded')
        everyText(decoded, (text) => {
          assert.equal(text, wellFormed(text))
          return text
        })
      }
      position = rows.at(-1)?.position ?? position
    }
  })
})
