import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { standAt, testLedger } from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { fingerprint, orderNumber } from '../../domain/identifiers.ts'
import { openDetails } from '../../ledger/encrypted-details.ts'
import { type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import { sweepCancels } from '../../ledger/sql/cancels.ts'
import { SHARDS } from '../../messages/messages.ts'
import { cancelBatch } from '../../operators/cancel-batch.ts'
import { cancelPayouts } from '../../operators/cancel-payouts.ts'
import { fence, findFence } from '../../operators/recovery/recovery.ts'
import { kafka, makeTopic } from '../../platform/kafka/kafka.fixture.ts'
import { createPublisher } from '../../platform/kafka/producer.ts'
import { readTopics } from '../../platform/kafka/reader.ts'
import { type OutgoingRecord, type RecordBatch, readHeader } from '../../platform/kafka/records.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import type { Codec } from '../../platform/registry/codec.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { Heartbeats } from '../../platform/running/heartbeats.ts'
import { unseal } from '../../platform/seal.ts'
import { openOfBatch } from '../../queries/sql/payouts/find.ts'
import { Relay } from '../relay/relay.ts'
import { Intake, type IntakeDeps } from './intake.ts'
import { startingOffset } from './starting-offset.ts'
import { LedgerRewound } from './store-batch.ts'

const request = (fields: object = {}) => ({ ...command('salary-1'), ...fields })

type Row = { payoutId: string; state: string; version: number; reason: string | null; ready: boolean }
const payouts = sql<
  object,
  Row
>`select payout_id, state, version, reason, ready from payouts order by payout_id`
const terms = sql<
  object,
  {
    payoutId: string
    state: string
    notBefore: number | null
    dueAt: number
    deadline: number
    acceptedAt: number
  }
>`
  select payout_id, state, (select not_before from payout_commands c where c.payout_id = p.payout_id), due_at,
    deadline, accepted_at
  from payouts p`
const kinds = sql<object, { kind: string }>`select kind from anomalies order by kind`
const lowerFences = sql<object>`
  update merchants set recovering_since = null, recovering_by = null, recovering_reason = null, recovering_one_step = false`
const stands = sql<object, { nextOffset: bigint }>`select next_offset from intake_offsets`
const posted = sql<
  object,
  { topic: string; key: string; value: Buffer; headers: Record<string, string> | null }
>`
  select topic, key, value, headers from ${outboxMessages} order by position, n`
const sealed = sql<object, { sealed: Buffer }>`select sealed from payout_commands`

/** Intake on a ledger of its own, with the encoders of a well-behaved upstream. */
async function intake(t: TestContext, overrides: Partial<IntakeDeps> = {}) {
  const { config, ledger, codec } = await testLedger(t)
  await standAt(ledger, 0, { offset: 0n, logId: null })
  const encoder = (name: string) => codec.encoder<object>(ledger.topics.commands, `in.payoutd.${name}`)
  const deps: IntakeDeps = {
    ledger,
    terms: config.merchants,
    keys: { sealing: config.sealing, fingerprint: config.fingerprintKey },
    decode: (value) => codec.decode(value),
    log: silentLogger,
    counted: new Metrics().counter('commands_total', 'test', ['outcome']),
    ...overrides,
  }
  return {
    config,
    ledger,
    codec,
    deps,
    requested: encoder('PayoutRequested'),
    cancelRequested: encoder('PayoutCancelRequested'),
    take: (values: readonly (Buffer | null)[], from = 0n) =>
      new Intake(deps).process(batch(ledger, values, from)),
  }
}

const batch = (ledger: Ledger, values: readonly (Buffer | null)[], from: bigint): RecordBatch => ({
  topic: ledger.topics.commands,
  partition: 0,
  nextOffset: from + BigInt(values.length),
  stored: { offset: from, logId: null },
  records: values.map((value, i) => ({
    offset: from + BigInt(i),
    key: Buffer.from('k'),
    value,
    headers: {},
    timestamp: 0,
  })),
})

const resultsOf = (ledger: Ledger, codec: Codec) => toldOn(ledger.topics.results, ledger, codec)

async function toldOn(wanted: string, ledger: Ledger, codec: Codec): Promise<Record<string, unknown>[]> {
  const rows = (await ledger.db.run(posted, {})).filter(({ topic }) => topic === wanted)
  const decoded = await Promise.all(rows.map(({ value }) => codec.decode(value)))
  return decoded.map((each) => (each.kind === 'decoded' ? (each.value as Record<string, unknown>) : {}))
}

test('a good command is queued, with its bank details sealed', async (t) => {
  const { take, requested, ledger, config } = await intake(t)
  await take([requested(request())])
  const [payout] = await ledger.db.run(payouts, {})
  assert.deepEqual(payout, { payoutId: 'salary-1', state: 'queued', version: 1, reason: null, ready: true })
  const [row] = await ledger.db.run(sealed, {})
  assert.ok(!row?.sealed.includes('50100123456789'))
  const key = { merchantId: 'acme', payoutId: 'salary-1' }
  assert.equal(openDetails(key, row?.sealed as Buffer, config.sealing).accountNo, '50100123456789')
})

test('a command for later is held until then', async (t) => {
  const { take, requested, ledger } = await intake(t)
  await take([requested(request({ notBefore: Date.now() + 3_600_000 }))])
  const [payout] = await ledger.db.run(payouts, {})
  assert.deepEqual([payout?.state, payout?.reason, payout?.ready], ['held', 'schedule', false])
})

for (const [field, other] of Object.entries({
  batchId: 'december',
  beneficiaryId: 'E2',
  phoneNumber: '9876501234',
  payerEmail: 'meera@example.com',
  remark: 'hold it',
  priority: 5,
  notBefore: Date.UTC(2099, 1, 1),
  deadline: Date.UTC(2099, 2, 1),
})) {
  test(`a repeated command with another ${field} changes nothing, and is an anomaly`, async (t) => {
    const { take, requested, ledger } = await intake(t)
    await take([requested(request()), requested(request())])
    const before = await ledger.db.run(payouts, {})
    await take([requested(request({ [field]: other }))], 2n)
    assert.deepEqual(await ledger.db.run(payouts, {}), before)
    assert.deepEqual(await ledger.db.run(kinds, {}), [{ kind: 'same-id-other-content' }])
  })
}

const counted = sql<object, { kind: string; times: number }>`
  select kind, times from anomalies order by times desc`
const TRIES = [1, 2, 3].map((day) => ({
  deadline: Date.UTC(2099, 2, day),
  fileHash: `${day}`.repeat(64),
  metadata: { try: `${day}` },
}))

test('repeats with a new deadline each are one anomaly, which counts them; another date makes another anomaly', async (t) => {
  const { take, requested, ledger } = await intake(t)
  await take([requested(request())])
  await take(
    TRIES.map((each) => requested(request(each))),
    1n,
  )
  assert.deepEqual(await ledger.db.run(counted, {}), [{ kind: 'same-id-other-content', times: 3 }])
  await take([requested(request({ ...TRIES[0], notBefore: Date.UTC(2099, 1, 1) }))], 4n)
  assert.deepEqual(
    (await ledger.db.run(counted, {})).map(({ times }) => times),
    [3, 1],
  )
})

test("repeats after a refusal with new words of the sender's own are one anomaly, which counts them", async (t) => {
  const { take, requested, ledger } = await intake(t)
  await take([requested(request({ phoneNumber: '12345' }))])
  await take(
    TRIES.map((each) => requested(request({ ...each, phoneNumber: '12345' }))),
    1n,
  )
  assert.deepEqual(await ledger.db.run(counted, {}), [{ kind: 'same-id-other-content', times: 3 }])
})

test("a second try from a corrected file, with the sender's own words changed, is a repeat", async (t) => {
  const { take, requested, ledger } = await intake(t)
  await take([requested(request())])
  const again = { rowNumber: 7, fileHash: 'ab'.repeat(32), metadata: { try: '2' } }
  await take([requested(request(again))], 1n)
  assert.deepEqual(await ledger.db.run(kinds, {}), [])
})

for (const fault of [{ phoneNumber: '12345' }, { remark: 'a&b' }, { metadata: { m: 'x'.repeat(1_025) } }]) {
  test(`a command that was refused for its ${Object.keys(fault)} and is corrected is an anomaly, and the same one is not`, async (t) => {
    const { take, requested, ledger } = await intake(t)
    await take([requested(request(fault)), requested(request(fault))])
    assert.deepEqual(await ledger.db.run(kinds, {}), [])
    await take([requested(request())], 2n)
    assert.equal((await ledger.db.run(payouts, {}))[0]?.state, 'rejected')
    const [odd] = await ledger.db.run(sql<object, { detail: string }>`select detail from anomalies`, {})
    assert.match(odd?.detail ?? '', /a refused command used up the id: send it under another payoutId/)
  })
}

test('for a payout stored before its whole content was, beneficiary and amount still count', async (t) => {
  const { take, requested, ledger } = await intake(t)
  await take([requested(request())])
  await ledger.db.run(sql<object>`update payout_commands set content = null`, {})
  await take([requested(request({ remark: 'other' }))], 1n)
  assert.deepEqual(await ledger.db.run(kinds, {}), [])
  await take([requested(request({ amount: 100n }))], 2n)
  assert.deepEqual(await ledger.db.run(kinds, {}), [{ kind: 'same-id-other-content' }])
})

test('a refused command is rejected with all its faults, bank details masked, and its id is spent', async (t) => {
  const { take, requested, ledger, codec } = await intake(t)
  await take([requested(request({ amount: 150n, accountNo: '50100-123456789', ifsc: 'X' }))])
  await take([requested(request())], 1n)
  const [payout] = await ledger.db.run(payouts, {})
  assert.equal(payout?.state, 'rejected')
  const [result, ...others] = await resultsOf(ledger, codec)
  assert.equal(others.length, 0)
  const { status, evidence, errors } = result as {
    status: string
    evidence: string
    errors: { field: string; rule: string }[]
  }
  assert.deepEqual([status, evidence], ['REJECTED', 'VALIDATION'])
  assert.deepEqual(
    errors.map(({ field, rule }) => `${field}:${rule}`),
    ['amount:whole-rupees', 'accountNo:account-no', 'ifsc:ifsc'],
  )
  assert.ok(!JSON.stringify(errors).includes('123456789'))
  assert.deepEqual(await ledger.db.run(kinds, {}), [{ kind: 'same-id-other-content' }])
})

test('an identical repeat writes nothing, in the same batch or another', async (t) => {
  const { take, requested, ledger } = await intake(t)
  await take([requested(request()), requested(request())])
  const before = await ledger.db.run(posted, {})
  await take([requested(request({ rowNumber: 9 }))], 2n)
  assert.equal((await ledger.db.run(payouts, {})).length, 1)
  assert.deepEqual(await ledger.db.run(posted, {}), before)
  assert.deepEqual(await ledger.db.run(kinds, {}), [])
})

test('a payout keeps its own deadline; without one, the deadline counts from when it may be sent', async (t) => {
  const { take, requested, ledger, config } = await intake(t)
  const inAYear = Date.now() + 365 * 86_400_000
  const usual = config.merchants.get('acme')?.deadlineMs ?? assert.fail('no merchant')
  await take([
    requested(request({ payoutId: 'both', notBefore: inAYear, deadline: inAYear + 60_000 })),
    requested(request({ payoutId: 'late', notBefore: inAYear })),
    requested(request({ payoutId: 'past', notBefore: 1_000_000_000_000 })),
    requested(request({ payoutId: 'soon' })),
  ])
  const rows = await ledger.db.run(terms, {})
  const stored = Object.fromEntries(rows.map(({ payoutId, ...row }) => [payoutId, row]))
  assert.deepEqual([stored.both?.notBefore, stored.both?.deadline], [inAYear, inAYear + 60_000])
  assert.partialDeepStrictEqual(stored.late, {
    state: 'held',
    notBefore: inAYear,
    dueAt: inAYear,
    deadline: inAYear + usual,
  })
  for (const id of ['past', 'soon']) {
    assert.equal(stored[id]?.state, 'queued')
    assert.equal(stored[id]?.deadline, (stored[id]?.acceptedAt ?? 0) + usual)
  }
})

test('the same id with other content changes nothing and is an anomaly, never a result', async (t) => {
  const { take, requested, ledger, codec, config } = await intake(t)
  await take([requested(request()), requested(request({ amount: 5_000_100n }))])
  await take([requested(request({ accountNo: '50100123456780' }))], 2n)
  assert.equal((await ledger.db.run(payouts, {})).length, 1)
  assert.equal((await ledger.db.run(kinds, {})).length, 2)
  assert.deepEqual(await resultsOf(ledger, codec), [])
  const fingerprintOf = (fields: object) =>
    fingerprint({ ...command('salary-1'), ...fields }, config.fingerprintKey).toString('hex')
  assert.deepEqual(
    (await toldOn(ledger.topics.anomalies, ledger, codec)).map(({ fingerprints }) => fingerprints),
    [
      [fingerprintOf({}), fingerprintOf({ amount: 5_000_100n })],
      [fingerprintOf({}), fingerprintOf({ accountNo: '50100123456780' })],
    ],
  )
})

test('commands are counted by their outcome; one that contradicts its id is no repeat', async (t) => {
  const { take, requested, deps } = await intake(t)
  await take([
    requested(request()),
    requested(request()),
    requested(request({ amount: 5_000_100n })),
    requested(request({ payoutId: 'salary-2' })),
    null,
  ])
  await take([requested(request({ accountNo: '50100123456780' })), requested(request())], 5n)
  const { values } = await deps.counted.get()
  assert.deepEqual(Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value])), {
    accepted: 2,
    repeated: 2,
    contradicts: 2,
    'dead-lettered': 1,
  })
})

test('a command that is refused, or cancelled as it comes, does not count as accepted', async (t) => {
  const { take, requested, cancelRequested, ledger, deps } = await intake(t)
  const refused = { currency: 'USD' }
  await take([
    cancelRequested({ merchantId: 'acme', payoutId: 'overtaken', reason: 'a mistake', requestedBy: 'asha' }),
  ])
  await take(
    [
      requested(request({ payoutId: 'good' })),
      requested(request({ payoutId: 'refused', ...refused })),
      requested(request({ payoutId: 'overtaken' })),
    ],
    1n,
  )
  await take([requested(request({ payoutId: 'overtaken' }))], 4n)
  await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'asha', reason: 'disk lost' })
  await take([requested(request({ payoutId: 'refused-while-fenced', ...refused }))], 5n)
  const { values } = await deps.counted.get()
  assert.deepEqual(
    values.flatMap(({ labels, value }) => (value > 0 ? [[labels.outcome, value]] : [])).sort(),
    [
      ['accepted', 1],
      ['cancelled', 1],
      ['held-with-faults', 1],
      ['rejected', 1],
      ['repeated', 1],
    ],
  )
})

test('intake skips a batch that comes again, by its offsets', async (t) => {
  const { take, requested, ledger } = await intake(t)
  const values = [requested(request()), requested(request({ payoutId: 'salary-2' }))]
  await take(values)
  await take(values)
  await take([...values, requested(request({ payoutId: 'salary-3' }))])
  assert.equal((await ledger.db.run(payouts, {})).length, 3)
  assert.equal((await ledger.db.run(stands, {}))[0]?.nextOffset, 3n)
})

test('a batch that begins beyond the position of the ledger is refused, and so is the next one', async (t) => {
  const { take, requested, ledger } = await intake(t)
  const values = ['salary-1', 'salary-2', 'salary-3'].map((payoutId) => requested(request({ payoutId })))
  await take(values.slice(0, 2))
  // A standby that lacks the last commit was promoted.
  await standAt(ledger, 0, { offset: 1n, logId: null })
  await assert.rejects(
    take(values.slice(2), 2n),
    /up to offset 1, .* up to offset 2: the ledger was set back/,
  )
  await standAt(ledger, 0, { offset: 2n, logId: 'another log' })
  await assert.rejects(take(values.slice(2), 2n), /the ledger was set back/)
  await ledger.db.run(sql<object>`delete from intake_offsets`, {})
  await assert.rejects(take(values.slice(2), 2n), /up to nothing/)
  assert.equal((await ledger.db.run(payouts, {})).length, 2)
})

test('a ledger that is set back between two chunks of a batch skips none of it', async (t) => {
  const { requested, ledger, deps, codec } = await intake(t)
  const values = Array.from({ length: 700 }, (_, i) => requested(request({ payoutId: `salary-${i}` })))
  let decoded = 0
  const decode = async (value: Buffer | null) => {
    if (++decoded === 600) await standAt(ledger, 0, { offset: 100n, logId: null })
    return codec.decode(value)
  }
  await assert.rejects(
    new Intake({ ...deps, decode }).process(batch(ledger, values, 0n)),
    /the ledger was set back/,
  )
  assert.equal((await ledger.db.run(stands, {}))[0]?.nextOffset, 100n)
})

test('the ledger also moves past offsets without a message at the end of a batch, even if the batch has only those', async (t) => {
  const { requested, ledger, deps } = await intake(t)
  await new Intake(deps).process({ ...batch(ledger, [requested(request())], 0n), nextOffset: 3n })
  assert.equal((await ledger.db.run(stands, {}))[0]?.nextOffset, 3n)
  await new Intake(deps).process({ ...batch(ledger, [], 3n), nextOffset: 5n })
  assert.equal((await ledger.db.run(stands, {}))[0]?.nextOffset, 5n)
})

const lossesOf = async (ledger: Ledger) => {
  const details = sql<
    object,
    { kind: string; detail: string }
  >`select kind, detail from anomalies order by kind, detail`
  return ledger.db.run(details, {})
}

test('a topic that was made again is read from its beginning, whatever its length, and reported once', async (t) => {
  for (const high of [1n, 9n]) {
    const { ledger, take, requested } = await intake(t)
    const at = { topic: ledger.topics.commands, partition: 0 }
    await standAt(ledger, 0, { offset: 5n, logId: 'old' })
    const log = async () => ({ id: 'new', low: 0n, high })
    const deps = { ledger, merchantIds: ['acme', 'globex'], log: silentLogger }
    const begun = await Promise.all([
      startingOffset(at, log, deps),
      startingOffset(at, log, deps),
      startingOffset(at, log, deps),
    ])
    assert.deepEqual(begun, Array(3).fill({ offset: 0n, logId: 'new' }))
    const losses = await lossesOf(ledger)
    assert.deepEqual(
      losses.map(({ kind }) => kind),
      ['commands-replaced', 'commands-replaced'],
    )
    assert.match(
      losses[0]?.detail ?? '',
      /deleted and created again .*up to offset 5, and now reads it from 0 on/,
    )
    await assert.rejects(take([requested(request())], 0n), /the ledger was set back/)
    assert.deepEqual(await startingOffset(at, log, deps), { offset: 0n, logId: 'new' })
    assert.equal((await lossesOf(ledger)).length, 2)
  }
})

test('intake reports commands that Kafka dropped before it read them, with their offsets, and reads the rest', async (t) => {
  const { ledger } = await intake(t)
  const at = { topic: ledger.topics.commands, partition: 0 }
  const deps = { ledger, merchantIds: ['acme'], log: silentLogger }
  await standAt(ledger, 0, { offset: 3n, logId: 'log' })
  const begun = await startingOffset(at, async () => ({ id: 'log', low: 6n, high: 9n }), deps)
  assert.deepEqual(begun, { offset: 6n, logId: 'log' })
  const [loss] = await lossesOf(ledger)
  assert.equal(loss?.kind, 'commands-lost')
  assert.match(loss?.detail ?? '', /dropped the offsets 3 to 5 of partition 0/)
  assert.match(loss?.detail ?? '', /set back may lack paid payouts and pay them again/)
})

test('intake reads a log again that ends before the position of the ledger, and reports that', async (t) => {
  const { ledger } = await intake(t)
  const at = { topic: ledger.topics.commands, partition: 0 }
  const deps = { ledger, merchantIds: ['acme'], log: silentLogger }
  await standAt(ledger, 0, { offset: 12n, logId: 'log' })
  const begun = await startingOffset(at, async () => ({ id: 'log', low: 2n, high: 9n }), deps)
  assert.deepEqual(begun, { offset: 2n, logId: 'log' })
  assert.match(
    (await lossesOf(ledger))[0]?.detail ?? '',
    /ends at offset 9, but payoutd had read it up to 12/,
  )
})

test('intake reads a log again that lost its end and has grown past it since, and reports that', async (t) => {
  const { deps, requested, ledger } = await intake(t)
  const at = { topic: ledger.topics.commands, partition: 0 }
  await new Intake(deps).process({ ...batch(ledger, [requested(request())], 0n), epoch: 3 })
  const asked: (number | null | undefined)[] = []
  const ending = (epochEnd: bigint) => async (epoch?: number | null) => {
    asked.push(epoch)
    return { id: null, low: 0n, high: 9n, epochEnd }
  }
  const among = { ledger, merchantIds: ['acme'], log: silentLogger }
  assert.deepEqual(await startingOffset(at, ending(1n), among), { offset: 1n, logId: null, epoch: 3 })
  assert.deepEqual(await lossesOf(ledger), [])
  assert.deepEqual(await startingOffset(at, ending(0n), among), { offset: 0n, logId: null })
  assert.deepEqual(asked, [3, 3])
  const losses = await lossesOf(ledger)
  assert.deepEqual(
    losses.map(({ kind }) => kind),
    ['commands-replaced'],
  )
  assert.match(losses[0]?.detail ?? '', /has other records from offset 0 on, but payoutd had read it up to 1/)
})

test('what replaced a lost tail is refused, and reading begins anew, if another consumer has stored that tail since', async (t) => {
  const { deps, requested, ledger } = await intake(t)
  const at = { topic: ledger.topics.commands, partition: 0 }
  await standAt(ledger, 0, { offset: 0n, logId: null })
  const take = ({ records, ...rest }: RecordBatch, epoch: number) =>
    new Intake(deps).process({
      ...{ ...rest, epoch },
      records: records.map((record) => ({ ...record, leaderEpoch: epoch })),
    })
  const values = (...ids: string[]) => ids.map((payoutId) => requested(request({ payoutId })))
  await take(batch(ledger, values('salary-1'), 0n), 1)
  // The owner before still stores what it had fetched.
  await take(batch(ledger, values('salary-1', 'salary-2', 'salary-3'), 0n), 1)
  await assert.rejects(take(batch(ledger, values('salary-4', 'salary-5'), 1n), 2), LedgerRewound)
  const log = async () => ({ id: null, low: 0n, high: 3n, epochEnd: 1n })
  const begun = await startingOffset(at, log, { ledger, merchantIds: ['acme'], log: silentLogger })
  assert.deepEqual(begun.offset, 0n)
  assert.deepEqual(
    (await lossesOf(ledger)).map(({ kind }) => kind),
    ['commands-replaced'],
  )
})

test('the epoch of a position is that of the commands around it, and between two epochs none counts', async (t) => {
  const { deps, requested, ledger } = await intake(t)
  const at = { topic: ledger.topics.commands, partition: 0 }
  const asked: (number | null | undefined)[] = []
  const log = async (epoch?: number | null) => {
    asked.push(epoch)
    return { id: null, low: 0n, high: 999n, epochEnd: null }
  }
  const look = () => startingOffset(at, log, { ledger, merchantIds: ['acme'], log: silentLogger })
  const values = Array.from({ length: 600 }, (_, i) => requested(request({ payoutId: `salary-${i}` })))
  const whole = batch(ledger, values, 0n)
  const of = (epochOf: (i: number) => number) => ({
    ...whole,
    records: whole.records.map((record, i) => ({ ...record, leaderEpoch: epochOf(i) })),
  })
  const breaking = (records: RecordBatch['records']) => ({ ...deps, decode: breakingAt(records, deps) })
  for (const epochOf of [() => 3, (i: number) => (i < 500 ? 3 : 4)]) {
    const { records, ...rest } = of(epochOf)
    await standAt(ledger, 0, { offset: 0n, logId: null })
    await assert.rejects(new Intake(breaking(records)).process({ ...rest, records }), /away/)
    await look()
  }
  await new Intake(deps).process({
    ...whole,
    stored: { offset: 500n, logId: null },
    records: whole.records.slice(500),
    epoch: 4,
  })
  await look()
  assert.deepEqual(asked, [3, null, 4])
})

/** The registry fails after the first 500 of these records. */
function breakingAt(records: RecordBatch['records'], { decode }: IntakeDeps): IntakeDeps['decode'] {
  const last = records[500]?.value
  return async (value) => {
    if (value === last) throw new Error('the registry is away')
    return decode(value)
  }
}

test('a ledger without a position, or without the id of the log, begins without a report', async (t) => {
  const { ledger } = await intake(t)
  const at = { topic: ledger.topics.commands, partition: 1 }
  const deps = { ledger, merchantIds: ['acme'], log: silentLogger }
  const log = async () => ({ id: 'log', low: 2n, high: 9n })
  assert.deepEqual(await startingOffset(at, log, deps), { offset: 2n, logId: 'log' })
  await standAt(ledger, 1, { offset: 4n, logId: null })
  assert.deepEqual(await startingOffset(at, log, deps), { offset: 4n, logId: 'log' })
  assert.deepEqual(await lossesOf(ledger), [])
})

test('two consumers of the same partition at once store each command once', async (t) => {
  const { take, requested, ledger } = await intake(t)
  const values = Array.from({ length: 700 }, (_, i) => requested(request({ payoutId: `salary-${i}` })))
  await Promise.all([take(values), take(values), take(values)])
  assert.equal((await ledger.db.run(payouts, {})).length, 700)
  assert.deepEqual(await ledger.db.run(kinds, {}), [])
})

test('a record that cannot be decoded, or is for an unknown merchant, is dead-lettered sealed, and the rest goes on', async (t) => {
  const logged: string[] = []
  const log = pino({ level: 'warn' }, { write: (line) => logged.push(line) })
  const { take, requested, ledger, config } = await intake(t, { log })
  const garbage = Buffer.from('{"accountNo":"50100999988887"}')
  const unknownSchema = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3])
  const stranger = requested(request({ merchantId: 'nobody' }))
  const noKey = requested(request({ payoutId: 'has spaces' }))
  await take([garbage, null, unknownSchema, stranger, noKey, requested(request())])
  assert.equal((await ledger.db.run(payouts, {})).length, 1)
  assert.equal((await ledger.db.run(stands, {}))[0]?.nextOffset, 6n)
  const dead = (await ledger.db.run(posted, {})).filter(({ topic }) => topic === ledger.topics.deadLetters)
  const reasons = dead.map(({ headers }) => headers?.reason)
  assert.deepEqual(reasons, [
    'not-avro',
    'tombstone',
    'unknown-schema-id',
    'unknown-merchant',
    'bad-payout-id',
  ])
  const [first] = dead
  assert.ok(!first?.value.includes('50100999988887'))
  const original = JSON.parse(
    unseal(first?.value as Buffer, `dead-letter:${first?.key}`, config.sealing).toString(),
  )
  assert.equal(Buffer.from(original.value, 'base64').toString(), garbage.toString())

  assert.equal(logged.length, 1)
  const { topic, partition, count, reasons: why } = JSON.parse(logged[0] ?? '')
  assert.deepEqual([topic, partition, count, why], [ledger.topics.commands, 0, 5, reasons])
  assert.ok(!logged[0]?.includes('50100'))
})

test('a record that the database itself refuses is dead-lettered alone', async (t) => {
  const { take, requested, ledger } = await intake(t)
  await ledger.db.run(
    sql<object>`alter table payouts add constraint odd check (payout_id <> 'salary-13')`,
    {},
  )
  await take(Array.from({ length: 20 }, (_, i) => requested(request({ payoutId: `salary-${i}` }))))
  assert.equal((await ledger.db.run(payouts, {})).length, 19)
  assert.equal((await ledger.db.run(stands, {}))[0]?.nextOffset, 20n)
  const dead = (await ledger.db.run(posted, {})).filter(({ topic }) => topic === ledger.topics.deadLetters)
  assert.deepEqual(
    dead.map(({ headers }) => headers?.reason),
    ['refused-by-database'],
  )
})

test('text that PostgreSQL cannot hold is rejected like any other fault', async (t) => {
  const { take, requested, ledger, codec } = await intake(t)
  await take([requested(request({ remark: 'a\0b', batchId: 'x\0y', currency: 'IN\0' }))])
  const [result] = await resultsOf(ledger, codec)
  assert.equal(result?.status, 'REJECTED')
})

test('while the registry is down, intake stores nothing, dead-letters nothing, and the batch can come again', async (t) => {
  const decode = async () => {
    throw new Error('registry is down')
  }
  const { requested, ledger, deps, codec } = await intake(t)
  const values = [requested(request())]
  await assert.rejects(new Intake({ ...deps, decode }).process(batch(ledger, values, 0n)), /registry is down/)
  assert.deepEqual(await ledger.db.run(posted, {}), [])
  await new Intake({ ...deps, decode: (value) => codec.decode(value) }).process(batch(ledger, values, 0n))
  assert.equal((await ledger.db.run(payouts, {})).length, 1)
})

test('a cancellation ends a payout that was never sent; one of an unknown payout is an anomaly', async (t) => {
  const { take, requested, cancelRequested, ledger, codec } = await intake(t)
  const cancel = (payoutId: string) =>
    cancelRequested({ payoutId, merchantId: 'acme', reason: 'left the company', requestedBy: 'hr' })
  await take([requested(request()), cancel('salary-1'), cancel('salary-9')])
  const [payout] = await ledger.db.run(payouts, {})
  assert.deepEqual([payout?.state, payout?.version], ['cancelled', 2])
  const [result] = await resultsOf(ledger, codec)
  assert.deepEqual([result?.status, result?.evidence], ['CANCELLED', 'COMMAND'])
  assert.deepEqual(await ledger.db.run(kinds, {}), [{ kind: 'cancel-of-unknown-payout' }])
})

test('intake remembers a cancellation that comes before its request, which wins, and stores an anomaly for a person', async (t) => {
  const { take, requested, cancelRequested, ledger, codec } = await intake(t)
  const cancel = (payoutId: string, reason: string) =>
    cancelRequested({ payoutId, merchantId: 'acme', reason, requestedBy: 'hr' })
  await take([cancel('salary-1', 'left'), cancel('salary-1', 'again'), cancel('salary-2', 'left')])
  await take([requested(request()), requested(request()), requested(request({ payoutId: 'salary-3' }))], 3n)
  assert.deepEqual(
    (await ledger.db.run(payouts, {})).map(({ payoutId, state, version }) => [payoutId, state, version]),
    [
      ['salary-1', 'cancelled', 2],
      ['salary-3', 'queued', 1],
    ],
  )
  const results = await resultsOf(ledger, codec)
  assert.deepEqual(
    results.map(({ payoutId, status, evidence }) => [payoutId, status, evidence]),
    [['salary-1', 'CANCELLED', 'COMMAND']],
  )
  // The same anomaly twice about one payout is one.
  assert.deepEqual(await ledger.db.run(kinds, {}), Array(2).fill({ kind: 'cancel-of-unknown-payout' }))
  const remembered = sql<object, { payoutId: string }>`select payout_id from early_cancels`
  assert.deepEqual(await ledger.db.run(remembered, {}), [{ payoutId: 'salary-2' }])
  await ledger.db.run(sweepCancels, { days: 1, limit: 10 })
  assert.equal((await ledger.db.run(remembered, {})).length, 1)
  await ledger.db.run(sweepCancels, { days: 0, limit: 10 })
  assert.deepEqual(await ledger.db.run(remembered, {}), [])
})

test('intake decodes records side by side, and they keep their order', async (t) => {
  let asking = 0
  const together: number[] = []
  const { take, ledger } = await intake(t, {
    decode: async (value) => {
      together.push(++asking)
      await setImmediate()
      asking--
      return { kind: 'undecodable', reason: 'unknown-schema-id', detail: String(value) }
    },
  })
  await take(Array.from({ length: 100 }, (_, n) => Buffer.from(String(n))))
  assert.equal(Math.max(...together), 25)
  const keys = (await ledger.db.run(posted, {})).map(({ key }) => key.split(':').at(-1))
  assert.equal(new Set(keys).size, 100)
  assert.deepEqual(
    keys,
    keys.toSorted((a, b) => Number(a) - Number(b)),
  )
})

test('cancellations that no command came for are deleted some at a time', async (t) => {
  const { ledger } = await intake(t)
  const remember = sql<object>`
    insert into early_cancels (merchant_id, payout_id, why, source) select 'acme', 'p' || n, '', 'COMMAND' from generate_series(1, 25) n`
  await ledger.db.run(remember, {})
  const sweep = async () => (await ledger.db.run(sweepCancels, { days: 0, limit: 10 }))[0]?.swept
  assert.deepEqual([await sweep(), await sweep(), await sweep(), await sweep()], [10, 10, 5, 0])
})

test('payouts of a batch that come after a person cancelled it are cancelled in their name, at any time within the month', async (t) => {
  const { take, requested, ledger } = await intake(t)
  const batchOf = (batchId: string | null, payoutId: string) =>
    requested(request({ payoutId, batchId, amount: BigInt(payoutId.slice(-1)) * 100_000n }))
  const cancel = { merchantId: 'acme', batchId: 'november', by: 'asha', reason: 'wrong file' }
  await take([batchOf('november', 'salary-1')])
  await cancelBatch(cancel, ledger)
  await take(
    [batchOf('november', 'salary-2'), batchOf('december', 'salary-3'), batchOf(null, 'salary-4')],
    1n,
  )
  await take([batchOf('november', 'salary-5')], 4n)
  const states = async () =>
    Object.fromEntries((await ledger.db.run(payouts, {})).map(({ payoutId, state }) => [payoutId, state]))
  assert.deepEqual(await states(), {
    'salary-1': 'queued',
    'salary-2': 'cancelled',
    'salary-3': 'queued',
    'salary-4': 'queued',
    'salary-5': 'cancelled',
  })
  const why = sql<object, { source: string; exchange: object }>`
    select source, exchange from history where payout_id = 'salary-2' order by version desc limit 1`
  assert.deepEqual(await ledger.db.run(why, {}), [
    { source: 'OPERATOR', exchange: { note: 'asha: wrong file (the batch)' } },
  ])
  await ledger.db.run(sweepCancels, { days: 0, limit: 10 })
  await take([batchOf('november', 'salary-6')], 5n)
  assert.equal((await states())['salary-6'], 'queued')
})

test('a batch that is cancelled while intake stores its payouts has none left to send', async (t) => {
  const { requested, ledger, deps } = await intake(t)
  const cancel = { merchantId: 'acme', batchId: 'november', by: 'asha', reason: 'wrong file' }
  const waiting = sql<object>`
    select from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
    where locktype = 'advisory' and not granted`
  let cancelled: Promise<void> | undefined
  let isOver = false
  const beforeCommit = async () => {
    cancelled ??= (async () => {
      await cancelBatch(cancel, ledger)
      isOver = true
      const found = await ledger.db.run(openOfBatch, { ...cancel, states: ['queued'] })
      await cancelPayouts({ ...cancel, payoutIds: found.map(({ payoutId }) => payoutId) }, ledger)
    })()
    await eventually(
      'the cancellation over, or waiting',
      async () => isOver || (await ledger.db.run(waiting, {})).length > 0,
    )
  }
  const db: Ledger['db'] = {
    ...ledger.db,
    transaction: (name, work) =>
      ledger.db.transaction(name, async (tx) => {
        const result = await work(tx)
        await beforeCommit()
        return result
      }),
  }
  const rows = [requested(request({ batchId: 'november' }))]
  await new Intake({ ...deps, ledger: { ...ledger, db } }).process(batch(ledger, rows, 0n))
  await cancelled
  assert.deepEqual(
    (await ledger.db.run(payouts, {})).map(({ state }) => state),
    ['cancelled'],
  )
})

test('a cancellation that comes at the same moment as its request, from another partition, is never lost', async (t) => {
  const { requested, cancelRequested, ledger, deps } = await intake(t)
  await standAt(ledger, 1, { offset: 0n, logId: null })
  const ids = Array.from({ length: 40 }, (_, i) => `salary-${i}`)
  const cancel = { merchantId: 'acme', reason: 'left the company', requestedBy: 'hr' }
  for (const [i, payoutId] of ids.entries()) {
    await Promise.all([
      new Intake(deps).process(batch(ledger, [requested(request({ payoutId }))], BigInt(i))),
      new Intake(deps).process({
        ...batch(ledger, [cancelRequested({ payoutId, ...cancel })], BigInt(i)),
        partition: 1,
      }),
    ])
  }
  const states = (await ledger.db.run(payouts, {})).map(({ state }) => state)
  assert.deepEqual(states, Array(40).fill('cancelled'))
})

test('an order that the gateway reported before its command came fences its merchant, and a person decides', async (t) => {
  const { take, requested, ledger } = await intake(t)
  const anomaly = {
    ...{ merchantId: 'acme', payoutId: null, orderNo: orderNumber('acme', 'salary-1', 1), exchange: null },
    ...({ kind: 'unknown-order', detail: 'a signed callback came', source: 'CALLBACK' } as const),
  }
  await ledger.db.transaction('test', (tx) => storeDecisions(tx, ledger, [{ anomaly }]))
  await take([requested(request()), requested(request({ payoutId: 'salary-2' }))])
  assert.deepEqual(
    (await ledger.db.run(payouts, {})).map(({ payoutId, state, ready }) => [payoutId, state, ready]),
    [
      ['salary-1', 'review', false],
      ['salary-2', 'queued', true],
    ],
  )
  assert.deepEqual(await ledger.db.run(kinds, {}), [{ kind: 'never-sent' }, { kind: 'unknown-order' }])
  assert.match((await findFence(ledger.db, 'acme'))?.reason ?? '', /before its command came/)
  // A record that Kafka delivers twice, or anybody repeats, tells nothing new.
  await ledger.db.run(lowerFences, {})
  await take([requested(request())])
  assert.equal(await findFence(ledger.db, 'acme'), null)
})

test('a cancellation that is read again after a restore waits, and keeps the payout from being sent: it may have been paid since', async (t) => {
  const { take, requested, cancelRequested, ledger } = await intake(t)
  const cancel = { payoutId: 'salary-1', merchantId: 'acme', reason: 'left the company', requestedBy: 'hr' }
  await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'asha', reason: 'disk lost' })
  await take([requested(request()), cancelRequested(cancel)])
  const [payout] = await ledger.db.run(payouts, {})
  assert.deepEqual([payout?.state, payout?.version, payout?.ready], ['queued', 1, false])
})

test('every message about a payout carries the traceparent of its command, unless W3C forbids it', async (t) => {
  const { ledger, deps, requested, cancelRequested } = await intake(t)
  const { commands, events, results, anomalies } = ledger.topics
  const upstream = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const another = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'
  const forbidden = [
    '',
    `0x-${upstream.slice(3)}`,
    `01-${upstream.slice(3)}`,
    `${upstream}-more`,
    ` ${upstream}`,
    upstream.toUpperCase(),
    upstream.replace('4bf92f', '4bf92'),
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01',
  ]
  const sent = (payoutId: string, value: Buffer, traceparent?: string): OutgoingRecord => ({
    topic: commands,
    key: `acme:${payoutId}`,
    value,
    headers: traceparent === undefined ? {} : { traceparent },
  })
  const asked = (payoutId: string, traceparent?: string, fields: object = {}) =>
    sent(payoutId, requested(request({ payoutId, ...fields })), traceparent)
  const cancelled = (payoutId: string, traceparent?: string) => {
    const cancel = { payoutId, merchantId: 'acme', reason: 'left the company', requestedBy: 'hr' }
    return sent(payoutId, cancelRequested(cancel), traceparent)
  }
  const records = [
    asked('traced', upstream),
    asked('traced', another, { amount: 100n }),
    cancelled('traced', another),
    asked('refused', another, { ifsc: 'X' }),
    asked('untraced'),
    cancelled('untraced', another),
    ...forbidden.map((traceparent, i) => asked(`forbidden-${i}`, traceparent)),
  ]

  let taken = 0n
  const decoded = new Map<string, string>()
  for (const topic of [commands, events, results, anomalies]) await makeTopic(topic)
  const reader = readTopics({
    connection: kafka(),
    topics: [commands, events, results, anomalies],
    onRecord: async ({ topic, partition, ...record }) => {
      if (topic === commands) {
        const stored = { offset: taken, logId: null }
        await new Intake(deps).process({
          topic,
          partition,
          records: [record],
          nextOffset: record.offset + 1n,
          stored,
        })
        taken = record.offset + 1n
      } else {
        const type = readHeader(record.headers, 'ce_type')?.replace('in.payoutd.', '')
        const message = `${record.key} ${type} ${readHeader(record.headers, 'traceparent')}`
        decoded.set(`${topic} ${record.offset}`, message)
      }
    },
    log: silentLogger,
  })
  t.after(() => reader.stop())
  const publisher = createPublisher('test', kafka(), silentLogger)
  t.after(() => publisher.close())
  const relay = new Relay({
    db: ledger.db,
    publisherOf: () => publisher,
    ping: async () => undefined,
    owner: randomUUID(),
    shards: SHARDS,
    published: new Metrics().counter('published_total', 'test', ['topic']),
    refused: new Metrics().counter('refused_total', 'test', ['topic', 'reason']),
    heartbeats: new Heartbeats(),
    log: silentLogger,
  })

  await publisher.publish(records)
  await eventually('all commands taken in', () => taken === BigInt(records.length))
  await relay.turn(0)
  const expected = [
    `acme:traced PayoutEvent ${upstream}`,
    `acme:traced PayoutAnomaly ${upstream}`,
    `acme:traced PayoutEvent ${upstream}`,
    `acme:traced PayoutResult ${upstream}`,
    `acme:refused PayoutEvent ${another}`,
    `acme:refused PayoutResult ${another}`,
    'acme:untraced PayoutEvent undefined',
    'acme:untraced PayoutEvent undefined',
    'acme:untraced PayoutResult undefined',
    ...forbidden.map((_, i) => `acme:forbidden-${i} PayoutEvent undefined`),
  ]
  await eventually('all messages read', () => decoded.size === expected.length)
  assert.deepEqual([...decoded.values()].sort(), expected.sort())
})

test('a process whose settings lack the merchant applies a cancellation, but no request', async (t) => {
  const { take, requested, cancelRequested, ledger, deps } = await intake(t)
  await take([requested(request())])
  const cancelled = (payoutId: string) =>
    cancelRequested({ merchantId: 'acme', payoutId, reason: 'left', requestedBy: 'hr' })
  const values = [cancelled('salary-1'), cancelled('salary-2'), requested(request({ payoutId: 'salary-3' }))]
  await new Intake({ ...deps, terms: new Map() }).process(batch(ledger, values, 1n))
  await take([requested(request({ payoutId: 'salary-2' }))], 4n)
  assert.deepEqual(
    (await ledger.db.run(payouts, {})).map(({ payoutId, state }) => [payoutId, state]),
    [
      ['salary-1', 'cancelled'],
      ['salary-2', 'cancelled'],
    ],
  )
})
