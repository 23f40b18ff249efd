import assert from 'node:assert/strict'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { BatchDeclaration, PayoutCommand } from '../domain/commands/command.ts'
import { paise } from '../domain/money.ts'
import { schemaSubjects, topicNames } from '../messages/topics.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { kafka, makeTopic, openTransaction, registryUrl, unique } from '../platform/kafka/kafka.fixture.ts'
import { readTopics } from '../platform/kafka/reader.ts'
import { type OutgoingRecord, readHeader } from '../platform/kafka/records.ts'
import { silentLogger } from '../platform/log.ts'
import { registerSchemas } from '../platform/registry/codec.ts'
import { connectRegistry } from '../platform/registry/registry.ts'
import { type CommandsTopic, openCommandsTopic } from './commands-topic.ts'
import { PayableDigest } from './file/payable-digest.ts'
import { type IngestDeps, type Ingested, type IngestRequest, ingest } from './ingest.ts'
import type { Compared, Overlap, OverlapComparison } from './overlap.ts'
import { isSettled, report } from './report.ts'

const HEADER = 'reference,account_name,account_no,ifsc,amount'
/** The name of a list beside it is too long. */
const LONG_NAME = `${'p'.repeat(239)}.csv`
const NOW = Date.UTC(2026, 10, 30)
const row = (n: number, amount = '500') =>
  `EMP${n},Asha Rao,50100${String(n).padStart(6, '0')},HDFC0001234,${amount}`
const rows = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => row(from + i))

/** Keeps what is published, as Kafka would; `fail` makes the next publish throw. */
class Kept implements CommandsTopic {
  readonly destination = { clusterId: 'one', topic: 'commands', topicId: 'first' as string | null }
  topicId: CommandsTopic['topicId'] = async () => this.destination.topicId
  readonly declared: BatchDeclaration[] = []
  readonly commands: PayoutCommand[] = []
  readonly records: OutgoingRecord[] = []
  opened = 0
  onPublish: () => void | Promise<void> = () => undefined
  readonly #pending = new Map<Buffer, () => void>()

  encodeDeclared(declared: BatchDeclaration): Buffer {
    return this.#encode(() => this.declared.push(declared))
  }
  encodeRequested(command: PayoutCommand): Buffer {
    return this.#encode(() => this.commands.push(command))
  }
  #encode(keep: () => void): Buffer {
    const value = Buffer.alloc(1)
    this.#pending.set(value, keep)
    return value
  }
  async publish(records: readonly OutgoingRecord[]): Promise<void> {
    await this.onPublish()
    for (const record of records) {
      this.records.push(record)
      if (record.value) this.#pending.get(record.value)?.()
    }
  }
  readonly ends = async () => []
  readonly close = () => Promise.resolve()
  get rowNumbers(): (number | null)[] {
    return this.commands.map(({ rowNumber }) => rowNumber)
  }
}

type Bench = {
  path: string
  commandsTopic: Kept
  folder: string
  write: (lines: string[]) => Promise<void>
  run: (request?: Partial<IngestRequest>, deps?: Partial<IngestDeps>) => Promise<Ingested>
}

const NONE = { rows: 0, amount: paise(0n) }
const some = (rows: number) => ({ rows, amount: paise(50_000n * BigInt(rows)) })
const overlap = (found: Partial<Overlap>): Overlap => ({
  ...{
    kind: 'compared',
    batch: NONE,
    missing: NONE,
    same: NONE,
    unpaid: NONE,
    changed: NONE,
    fresh: NONE,
    lacked: 0,
    behind: 0n,
    cancelled: null,
  },
  ...found,
})

async function bench(lines: string[], file = 'payroll.csv'): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), 'ingest-'))
  const path = join(folder, file)
  const commandsTopic = new Kept()
  const write = (lines: string[]) => writeFile(path, [HEADER, ...lines, ''].join('\r\n'))
  await write(lines)
  const limits = { minAmount: null, maxAmount: null }
  return {
    path,
    commandsTopic,
    folder,
    write,
    run: (request = {}, deps = {}) =>
      ingest(
        {
          payroll: { path, batch: { merchantId: 'acme', batchId: 'nov', limits }, referenceFrom: [] },
          expected: { rows: null, amount: null },
          publishValidRows: false,
          dryRun: false,
          ...request,
        },
        {
          openCommandsTopic: async () => {
            commandsTopic.opened++
            return commandsTopic
          },
          checkpointFolder: join(folder, 'checkpoints'),
          compare: async ({ totals }) => overlap({ fresh: totals }),
          cancellation: async () => null,
          agrees: async () => assert.fail('nothing is to be asked'),
          onBegin: async () => undefined,
          clock: { now: () => NOW, monotonic: () => 0 },
          signal: new AbortController().signal,
          onBytes: () => undefined,
          onPublished: () => undefined,
          ...deps,
        },
      ),
  }
}

test('the ingest declares a good file first, then publishes every row once', async () => {
  const { commandsTopic, run } = await bench(rows(1, 3))
  const ingested = await run()
  assert.equal(ingested.kind, 'published')
  assert.deepEqual(commandsTopic.declared, [
    {
      merchantId: 'acme',
      batchId: 'nov',
      rows: 3,
      amount: 150_000n,
      refused: 0,
      fileHash: ingested.kind === 'published' ? ingested.summary.fileHash : '',
      declaredAt: NOW,
    },
  ])
  assert.deepEqual(commandsTopic.rowNumbers, [2, 3, 4])
  for (const { fileHash } of commandsTopic.commands)
    assert.equal(fileHash, commandsTopic.declared[0]?.fileHash)
  assert.equal(commandsTopic.records[0]?.key, 'acme:nov')
  assert.equal(commandsTopic.records[1]?.key, `acme:${commandsTopic.commands[0]?.payoutId}`)
  assert.equal(commandsTopic.records[1]?.headers?.ce_type, 'in.payoutd.PayoutRequested')
  assert.equal(new Set(commandsTopic.records.map(({ headers }) => headers?.ce_id)).size, 4)
})

test('a file with a refused row publishes nothing unless the operator asks for the valid rows', async () => {
  const { commandsTopic, run } = await bench([row(1), row(2, '500.50'), row(3)])
  assert.equal((await run()).kind, 'rows-refused')
  assert.equal(commandsTopic.opened, 0)
  const ingested = await run({ publishValidRows: true })
  assert.equal(ingested.kind, 'published')
  assert.deepEqual(commandsTopic.rowNumbers, [2, 4])
  assert.equal(commandsTopic.declared[0]?.refused, 1)
})

test('refused rows are listed beside the file, masked and without formulas, until they are corrected', async () => {
  const { path, run, write } = await bench([
    row(1),
    '=HYPERLINK(1),"Rao & Sons",5010-0123-4567,HDFC0001234,500',
  ])
  const ingested = await run()
  assert.equal(ingested.kind === 'rows-refused' && ingested.refusedFile, `${path}.refused.csv`)
  const list = await readFile(`${path}.refused.csv`, 'utf8')
  const [, name, account] = list.split('\r\n')
  assert.match(name ?? '', /^3,'=HYPERLINK\(1\),account_name,signature-safe,/)
  assert.match(account ?? '', /^3,'=HYPERLINK\(1\),account_no,account-no,/)
  assert.doesNotMatch(list, /5010-0123/)
  await write([row(1), row(2)])
  assert.equal((await run({ dryRun: true })).kind, 'dry-run')
  await assert.rejects(readFile(`${path}.refused.csv`))
})

test('if the list of refused rows cannot be written, the ingest stops, and the error says where', async () => {
  const { run, commandsTopic } = await bench([row(1), row(2, '500.50')], LONG_NAME)
  await assert.rejects(run({ publishValidRows: true }), (error) => {
    assert.ok(error instanceof ExpectedFailure)
    assert.match(error.message, /cannot write the list of .*p\.csv\.refused\.csv \(ENAMETOOLONG\)/)
    return true
  })
  assert.equal(commandsTopic.opened, 0)
})

test('every published payout is listed beside the file by its row, and no other is', async () => {
  const { path, commandsTopic, run, write } = await bench([row(1), row(2, 'x'), row(1), row(3)])
  await run()
  await run({ publishValidRows: true, dryRun: true })
  await assert.rejects(readFile(`${path}.payouts.csv`), { code: 'ENOENT' })
  const ingested = await run({ publishValidRows: true })
  assert.equal(ingested.kind === 'published' && ingested.payoutsFile, `${path}.payouts.csv`)
  const [one, three] = commandsTopic.commands.map(({ payoutId }) => payoutId)
  const list = `\ufeffrow,reference,payoutId\r\n2,EMP1,${one}\r\n5,EMP3,${three}\r\n`
  assert.equal(await readFile(`${path}.payouts.csv`, 'utf8'), list)

  await rm(`${path}.payouts.csv`)
  assert.equal((await run({ publishValidRows: true })).kind, 'published-before')
  assert.equal(await readFile(`${path}.payouts.csv`, 'utf8'), list)
  await write([row(9)])
  await run()
  assert.match(await readFile(`${path}.payouts.csv`, 'utf8'), /\r\n2,EMP9,F[A-Z2-7]{26}\r\n$/)
})

test('an ingest leaves no list of an earlier one, however it ends; a dry run leaves what was published', async () => {
  const { path, folder, run, write } = await bench([row(1), row(2, 'x')])
  const listed = async () => (await readdir(folder)).filter((name) => /^payroll\.csv\./.test(name)).sort()
  const limits = { minAmount: null, maxAmount: null }
  const payroll = { path, batch: { merchantId: 'acme', batchId: 'dec', limits }, referenceFrom: [] }
  const [payouts, refused] = ['payroll.csv.payouts.csv', 'payroll.csv.refused.csv']
  await run({ publishValidRows: true })
  assert.deepEqual(await listed(), [payouts, refused])
  await writeFile(path, '')
  assert.equal((await run({ dryRun: true })).kind, 'unreadable')
  assert.deepEqual(await listed(), [payouts])
  await write([row(1), row(3, '0')])
  assert.equal((await run({ payroll })).kind, 'rows-refused')
  assert.deepEqual(await listed(), [refused])
  await writeFile(path, '')
  assert.equal((await run()).kind, 'unreadable')
  assert.deepEqual(await listed(), [])
})

test('if the list of an earlier ingest cannot be deleted, the ingest stops, and the error says where', async () => {
  const { path, run, commandsTopic } = await bench(rows(1, 2))
  await mkdir(`${path}.payouts.csv`)
  await assert.rejects(run(), (error) => {
    assert.ok(error instanceof ExpectedFailure)
    assert.match(error.message, /cannot write the list of payouts, .*payroll\.csv\.payouts\.csv \(/)
    return true
  })
  assert.equal(commandsTopic.opened, 0)
})

test('an interrupted ingest lists no payouts until it is complete, and then all of them', async () => {
  const { folder, path, commandsTopic, run } = await bench(rows(1, 6_000))
  const abort = new AbortController()
  await run({}, { signal: abort.signal, onPublished: (done) => done >= 4_000 && abort.abort() })
  assert.deepEqual((await readdir(folder)).sort(), ['checkpoints', 'payroll.csv'])
  commandsTopic.onPublish = () => {
    throw new Error('broker is gone')
  }
  await assert.rejects(run(), /broker is gone/)
  assert.deepEqual((await readdir(folder)).sort(), ['checkpoints', 'payroll.csv'])
  commandsTopic.onPublish = () => undefined
  assert.equal((await run()).kind, 'published')
  const [, ...lines] = (await readFile(`${path}.payouts.csv`, 'utf8')).trimEnd().split('\r\n')
  assert.deepEqual(
    lines,
    commandsTopic.commands.map(
      ({ rowNumber, metadata, payoutId }) => `${rowNumber},${metadata.reference},${payoutId}`,
    ),
  )
  assert.deepEqual((await readdir(folder)).sort(), ['checkpoints', 'payroll.csv', 'payroll.csv.payouts.csv'])
})

test('if the list of payouts cannot be written, the ingest stops before it publishes the first row', async () => {
  const { run, commandsTopic } = await bench(rows(1, 3), LONG_NAME)
  await assert.rejects(run(), (error) => {
    assert.ok(error instanceof ExpectedFailure)
    assert.match(error.message, /p\.csv\.payouts\.csv \(ENAMETOOLONG\): it published nothing/)
    return true
  })
  assert.equal(commandsTopic.records.length, 0)
})

test('the same row twice is one payout; the same reference with other content is refused', async () => {
  const { commandsTopic, run } = await bench([row(1), row(1), row(1, '₹500.00'), row(1, '600')])
  const ingested = await run({ publishValidRows: true })
  assert.ok(ingested.kind === 'published')
  const { all, payable, repeated, refused } = ingested.summary
  assert.deepEqual([all.rows, payable.rows, repeated.rows, refused.rows], [4, 1, 2, 1])
  assert.deepEqual(
    [all.amount, payable.amount, repeated.amount, refused.amount],
    [210_000n, 50_000n, 100_000n, 60_000n],
  )
  assert.deepEqual(commandsTopic.rowNumbers, [2])
})

test('a row that repeats the reference of a row that cannot be read whole is refused, because nobody knows which is right', async () => {
  const wide = (reference: string) => `${reference},Rao, Asha,50100123456789,HDFC0001234,45000`
  for (const reference of ['EMP1', '202611280042']) {
    const again = row(1).replace('EMP1', reference)
    const { path, commandsTopic, run } = await bench([wide(reference), again, row(2)])
    const ingested = await run({ publishValidRows: true })
    assert.deepEqual(commandsTopic.rowNumbers, [4])
    assert.match(
      await readFile(`${path}.refused.csv`, 'utf8'),
      /^3,[^,]*,reference,reference-reused,"?row 2 /m,
    )
    assert.match(
      report(ingested),
      /without the amounts of 1: in a row with too many or too few cells, unreadable/,
    )
  }
  const long = await bench([row(1).replace('Asha', 'x'.repeat(2_000)), row(1), row(2)])
  await long.run({ publishValidRows: true })
  assert.deepEqual(long.commandsTopic.rowNumbers, [4])
})

test('rows that differ by nothing that a person can see are one payout', async () => {
  const like = (reference: string, name: string) => `${reference},${name},50100100001,HDFC0001234,500`
  const { commandsTopic, run } = await bench([
    like('Jos\u00e9 D', 'Jos\u00e9 D'),
    like('Jose\u0301\u00a0D\u200b', 'Jose\u0301 D'),
  ])
  const ingested = await run()
  assert.ok(ingested.kind === 'published')
  assert.deepEqual([ingested.summary.payable.rows, ingested.summary.repeated.rows], [1, 1])
  assert.deepEqual(commandsTopic.rowNumbers, [2])
})

test('totals that differ from the expected ones stop the ingest before it even contacts Kafka', async () => {
  const { commandsTopic, run } = await bench(rows(1, 3))
  assert.equal((await run({ expected: { rows: 4, amount: null } })).kind, 'totals-differ')
  assert.equal((await run({ expected: { rows: null, amount: paise(150_001n) } })).kind, 'totals-differ')
  assert.equal(commandsTopic.opened, 0)
  assert.equal((await run({ expected: { rows: 3, amount: paise(150_000n) } })).kind, 'published')
})

test('expected totals count the whole file: refused and repeated rows too', async () => {
  const { run } = await bench([row(1), row(1), row(2, '"1,00,000"').replace('HDFC0001234', 'HDFC')])
  const expected = { rows: 3, amount: paise(10_100_000n) }
  assert.equal((await run({ expected, publishValidRows: true })).kind, 'published')
})

test('the error about differing totals says how many amounts could not be added up', async () => {
  const { run } = await bench([row(1), row(2, '-5'), row(3, '12000.50')])
  const ingested = await run({ expected: { rows: null, amount: paise(1_249_550n) } })
  assert.ok(ingested.kind === 'totals-differ')
  assert.equal(ingested.differences.length, 1)
  assert.match(
    ingested.differences[0] ?? '',
    /adds up to ₹500\.00\. The rows whose amount .*\(2\) are not in this/,
  )
})

test('a dry run checks everything and publishes nothing', async () => {
  const { commandsTopic, run, folder } = await bench(rows(1, 3))
  assert.equal((await run({ dryRun: true })).kind, 'dry-run')
  assert.equal(commandsTopic.opened, 0)
  assert.deepEqual((await readdir(folder)).sort(), ['checkpoints', 'payroll.csv'])
})

test('a file without a payable row, and an unreadable file, are reported as such', async () => {
  const { run, write, path } = await bench([row(1, '0')])
  assert.equal((await run({ publishValidRows: true })).kind, 'nothing-payable')
  await write([])
  assert.deepEqual(await run(), { kind: 'unreadable', faults: ['the file has no rows below its header'] })
  await writeFile(path, '')
  assert.deepEqual(await run(), { kind: 'unreadable', faults: ['the file is empty'] })
})

test('while one ingest publishes a file, another ingest of it is refused with the reason, also for another batch or as a dry run, and publishes nothing', async () => {
  const { path, commandsTopic, run } = await bench(rows(1, 3))
  const other = new Kept()
  const limits = { minAmount: null, maxAmount: null }
  const payroll = { path, batch: { merchantId: 'acme', batchId: 'dec', limits }, referenceFrom: [] }
  const again = () => run({ payroll }, { openCommandsTopic: async () => other })
  let refusals = 0
  commandsTopic.onPublish = async () => {
    for (const second of [run, again, () => run({ dryRun: true })]) {
      await assert.rejects(second(), (error) => {
        assert.ok(error instanceof ExpectedFailure)
        assert.match(error.message, /another ingest of .*payroll\.csv is under way/)
        refusals++
        return true
      })
    }
  }
  assert.equal((await run()).kind, 'published')
  assert.ok(refusals > 0)
  assert.deepEqual([commandsTopic.rowNumbers, other.records], [[2, 3, 4], []])
  assert.equal((await again()).kind, 'published')
})

test('an interrupted ingest resumes where it was, and declares the batch once', async () => {
  const { commandsTopic, run } = await bench(rows(1, 2_500))
  const abort = new AbortController()
  const first = await run({}, { signal: abort.signal, onPublished: () => abort.abort() })
  assert.ok(first.kind === 'interrupted' && first.published > 0 && first.published < 2_500)
  assert.equal(commandsTopic.commands.length, first.published)
  const second = await run({}, { clock: { now: () => NOW + 60_000, monotonic: () => 0 } })
  assert.ok(second.kind === 'published' && second.resumedAfter === first.published)
  assert.deepEqual(
    commandsTopic.rowNumbers,
    Array.from({ length: 2_500 }, (_, i) => i + 2),
  )
  assert.equal(commandsTopic.declared.length, 1)
})

test('if Kafka fails in the middle, no row is lost: the next run publishes the rest', async () => {
  const { commandsTopic, run } = await bench(rows(1, 2_500))
  let calls = 0
  commandsTopic.onPublish = () => {
    if (++calls === 4) throw new Error('broker is gone')
  }
  await assert.rejects(run(), /broker is gone/)
  assert.ok(commandsTopic.commands.length > 0 && commandsTopic.commands.length < 2_500)
  assert.equal((await run()).kind, 'published')
  assert.deepEqual(
    commandsTopic.rowNumbers,
    Array.from({ length: 2_500 }, (_, i) => i + 2),
  )
})

test('if the disk is full, the error says what to do, and the next run publishes the rest', async () => {
  const { commandsTopic, path, run } = await bench(rows(1, 2_500))
  let calls = 0
  commandsTopic.onPublish = () => {
    if (++calls === 4) throw Object.assign(new Error('no space left on device, write'), { code: 'ENOSPC' })
  }
  await assert.rejects(run(), (error: Error) => {
    assert.ok(error instanceof ExpectedFailure)
    assert.match(error.message, /\(ENOSPC\)\. What it has published stays so: make room, and run the same/)
    return error.message.includes(path)
  })
  assert.equal((await run()).kind, 'published')
  assert.equal(new Set(commandsTopic.rowNumbers).size, 2_500)
})

test('a file whose topic was deleted and created again does not count as published, and is published whole', async () => {
  const { commandsTopic, run } = await bench(rows(1, 3))
  commandsTopic.topicId = async () => 'second'
  await assert.rejects(run(), /^Error: the topic commands was deleted and created again/)
  const again = Object.assign(new Kept(), {
    destination: { ...commandsTopic.destination, topicId: 'second' },
  })
  assert.equal((await run({}, { openCommandsTopic: async () => again })).kind, 'published')
  assert.equal(again.commands.length, 3)
})

const ODD: Record<string, OverlapComparison> = {
  'has payouts that the file lacks, and lacks some of the file': overlap({
    fresh: some(2),
    missing: some(1),
  }),
  'has a payout with another amount or payee': overlap({ changed: some(1) }),
  'may have more than was taken in': overlap({ fresh: some(3), behind: 1n }),
  'is not known': { kind: 'unknown', why: 'the ledger is down' },
}
for (const [what, comparison] of Object.entries(ODD)) {
  test(`a file whose batch ${what} is published only if somebody agrees`, async () => {
    const { commandsTopic, run, folder } = await bench(rows(1, 3))
    const compare = async () => comparison
    const refused = await run({}, { compare, agrees: async () => false })
    assert.deepEqual(
      [refused.kind, 'comparison' in refused && refused.comparison],
      ['batch-differs', comparison],
    )
    assert.equal(commandsTopic.records.length, 0)
    assert.deepEqual(await readdir(folder), ['checkpoints', 'payroll.csv'])
    const dry = await run({ dryRun: true }, { compare })
    assert.deepEqual([dry.kind, 'comparison' in dry && dry.comparison], ['dry-run', comparison])
    const abort = new AbortController()
    const begun = await run({}, { compare, agrees: async () => true, onPublished: () => abort.abort() })
    assert.equal(begun.kind, 'published')
    assert.equal((await run({}, { compare })).kind, 'published-before')
  })
}

test('an ingest says how many rows of the file ended unpaid, and what of the batch the file lacks', async () => {
  const { run } = await bench(rows(1, 5))
  const compare = async () => overlap({ same: some(5), unpaid: some(2), missing: some(3), batch: some(6) })
  const dry = await run({ dryRun: true }, { compare })
  const published = await run({}, { compare })
  const again = await run({}, { compare })
  assert.deepEqual([published.kind, again.kind], ['published', 'published-before'])
  for (const ingested of [dry, published, again]) {
    assert.match(
      report(ingested),
      /2 of ₹1,000.00 of the file failed, or were cancelled or rejected: payoutd does not pay/,
    )
    assert.match(
      report(ingested),
      /3 (other payouts )?of ₹1,500.00 of the batch|3 other payouts of the batch, of ₹1,500.00/,
    )
  }
})

test('an interrupted ingest whose batch was cancelled since continues only if somebody agrees, and never promises payment', async () => {
  const { commandsTopic, run } = await bench(rows(1, 1_200))
  const abort = new AbortController()
  const why = 'asha: the wrong file (the batch)'
  const first = await run({}, { onPublished: () => abort.abort(), signal: abort.signal })
  assert.ok(first.kind === 'interrupted' && first.cancelled === null)
  const published = commandsTopic.commands.length
  const cancelled = {
    cancellation: async () => why,
    compare: async () => overlap({ same: some(published), fresh: some(1_200 - published), cancelled: why }),
  }
  const refused = await run({}, { ...cancelled, agrees: async () => false })
  assert.ok(refused.kind === 'batch-differs' && refused.published === published)
  assert.equal(commandsTopic.commands.length, published)
  assert.match(report(refused), /\n\nNothing more was published than the 500 payouts of an earlier run\. /)
  const agreed = await run({}, { ...cancelled, agrees: async () => true })
  const again = await run({}, cancelled)
  assert.deepEqual([agreed.kind, again.kind], ['published', 'published-before'])
  const dry = await run({ dryRun: true }, cancelled)
  for (const ingested of [refused, agreed, again, dry]) {
    assert.match(
      report(ingested),
      /the batch was cancelled \(asha: the wrong file \(the batch\)\): payoutd cancels /,
    )
    assert.doesNotMatch(
      report(ingested),
      /to be paid|will be paid|will still be paid|does not pay again|pays nobody/,
    )
  }
  assert.deepEqual([agreed, again].map(isSettled), [false, false])
})

for (const first of [500, 1_200]) {
  test(`a file of 1,200 rows is published again if the ledger lacks some of the ${first} that were published`, async () => {
    const { commandsTopic, run } = await bench(rows(1, 1_200))
    const abort = new AbortController()
    await run({}, { onPublished: (done) => done === first && abort.abort(), signal: abort.signal })
    const lacking = (found: Partial<Overlap> = {}) => ({
      compare: async ({ published }: Compared) =>
        overlap({ lacked: published && 1, fresh: some(1), ...found }),
    })
    const refused = await run({}, { ...lacking({ missing: some(1) }), agrees: async () => false })
    assert.ok(refused.kind === 'batch-differs' && refused.published === first)
    const again = await run({}, lacking())
    assert.ok(again.kind === 'published' && again.resumedAfter === 0 && isSettled(again))
    assert.match(report(again), /was published again, because payoutd did not have 1 of the payouts that an /)
    assert.equal(commandsTopic.commands.length, first + 1_200)
    assert.equal((await run()).kind, 'published-before')
  })
}

for (const first of [500, 1_200]) {
  test(`while intake is behind, what it lacks of ${first} published rows of 1,200 may be on its way, and the report says so`, async () => {
    const { commandsTopic, run } = await bench(rows(1, 1_200))
    const abort = new AbortController()
    await run({}, { onPublished: (done) => done === first && abort.abort(), signal: abort.signal })
    const again = await run({}, { compare: async () => overlap({ lacked: 1, behind: 2n }) })
    assert.equal(again.kind, first === 500 ? 'published' : 'published-before')
    assert.equal(isSettled(again), false)
    assert.match(
      report(again),
      /But payoutd does not have 1 of the payouts that an earlier run published, and has not stored 2 commands yet: payoutd doctor/,
    )
    assert.equal(commandsTopic.commands.length, 1_200)
  })
}

test('a file that was published before a ledger stopped answering is not published again, and the report says what is unknown', async () => {
  const { commandsTopic, run } = await bench(rows(1, 3))
  await run()
  const again = await run({}, { compare: async () => ({ kind: 'unknown', why: 'the ledger is down' }) })
  assert.deepEqual(
    [again.kind, isSettled(again), commandsTopic.commands.length],
    ['published-before', true, 3],
  )
  assert.match(report(again), /It is unknown what the batch already has: the ledger is down/)
})

test('stopping during the comparison of the file with its batch publishes nothing', async () => {
  const { commandsTopic, run } = await bench(rows(1, 3))
  const abort = new AbortController()
  const compare = async () => {
    abort.abort()
    abort.signal.throwIfAborted()
    return overlap({})
  }
  assert.equal((await run({}, { compare, signal: abort.signal })).kind, 'stopped')
  assert.equal(commandsTopic.records.length, 0)
})

test('a file that has all of its batch, or whose batch has all of the file, is published without a question', async () => {
  for (const fits of [
    { fresh: some(1), same: some(2) },
    { same: some(3), missing: some(2) },
  ]) {
    const { run } = await bench(rows(1, 3))
    assert.equal((await run({}, { compare: async () => overlap(fits) })).kind, 'published')
  }
})

test('the same file with references from other columns is another ingest, and does not resume the first one', async () => {
  const { path, commandsTopic, run, write } = await bench([])
  await write([])
  const lines = [
    'employee_id,month,account_name,account_no,ifsc,amount',
    '7,nov,Asha Rao,5010012345678,HDFC0001234,500',
    '',
  ]
  await writeFile(path, lines.join('\r\n'))
  const limits = { minAmount: null, maxAmount: null }
  const from = (...referenceFrom: string[]) =>
    run({ payroll: { path, referenceFrom, batch: { merchantId: 'acme', batchId: 'nov', limits } } })
  assert.equal((await from('employee_id', 'month')).kind, 'published')
  assert.equal((await from('employee_id', 'month')).kind, 'published-before')
  assert.equal((await from('month', 'employee_id')).kind, 'published')
  assert.equal(new Set(commandsTopic.commands.map(({ payoutId }) => payoutId)).size, 2)
})

test('a published file is not published again, except to another Kafka', async () => {
  const { commandsTopic, run } = await bench(rows(1, 3))
  await run()
  assert.equal((await run()).kind, 'published-before')
  assert.equal(commandsTopic.commands.length, 3)
  const other = Object.assign(new Kept(), { destination: { ...commandsTopic.destination, clusterId: 'two' } })
  assert.equal((await run({}, { openCommandsTopic: async () => other })).kind, 'published')
  assert.equal(other.commands.length, 3)
})

test('a corrected file for the same batch keeps the ids of its earlier rows', async () => {
  const { commandsTopic, run, write } = await bench([row(1), row(2, 'x'), row(3)])
  await run({ publishValidRows: true })
  await write([row(3), row(2), row(1)])
  assert.equal((await run()).kind, 'published')
  const [one, three, threeAgain, two, oneAgain] = commandsTopic.commands.map(({ payoutId }) => payoutId)
  assert.deepEqual([oneAgain, threeAgain], [one, three])
  assert.equal(new Set([one, two, three]).size, 3)
})

test('rows that other limits make payable are published although the file was published before', async () => {
  const { path, commandsTopic, run } = await bench([row(1, '500'), row(2, '900')])
  const between = (minAmount: bigint, maxAmount: bigint) => {
    const limits = { minAmount: paise(minAmount), maxAmount: paise(maxAmount) }
    return {
      publishValidRows: true,
      payroll: { path, referenceFrom: [], batch: { merchantId: 'acme', batchId: 'nov', limits } },
    }
  }
  await run(between(100n, 60_000n))
  assert.deepEqual(commandsTopic.rowNumbers, [2])
  assert.equal((await run(between(60_000n, 100_000n))).kind, 'published')
  assert.deepEqual(commandsTopic.rowNumbers, [2, 3])
  assert.equal((await run(between(100n, 100_000n))).kind, 'published')
  assert.deepEqual(commandsTopic.rowNumbers, [2, 3, 2, 3])
})

test('a file that changes during publication is noticed', async () => {
  const { path, commandsTopic, run } = await bench(rows(1, 10))
  commandsTopic.onPublish = () => appendFile(path, `${row(11)}\r\n`)
  await assert.rejects(run(), /while payoutd published it: /)
})

test('if a file changes after the check, nothing unchecked is published', async () => {
  const whole = rows(1, 1_200)
  for (const [changedRow, published] of [
    [1, 0],
    [501, 500],
    [1_200, 1_000],
  ] as const) {
    const { commandsTopic, run, write } = await bench(whole)
    const openCommandsTopic = async () => {
      await write(whole.with(changedRow - 1, row(changedRow, '900000')))
      return commandsTopic
    }
    await assert.rejects(
      run({ expected: { rows: 1_200, amount: paise(60_000_000n) } }, { openCommandsTopic }),
      new RegExp(`while payoutd published it: ${published} rows`),
    )
    assert.equal(commandsTopic.commands.length, published)
    await write(whole)
    assert.equal((await run()).kind, 'published')
    assert.deepEqual(
      commandsTopic.rowNumbers,
      Array.from({ length: 1_200 }, (_, i) => i + 2),
    )
  }
})

test('a position that was kept for other payments of the same file does not count', async () => {
  const { commandsTopic, run, folder } = await bench(rows(1, 2))
  await run()
  const name = (await readdir(join(folder, 'checkpoints'))).find((each) => each.endsWith('.json'))
  const path = join(folder, 'checkpoints', name ?? '')
  const kept = JSON.parse(await readFile(path, 'utf8'))
  const digest = new PayableDigest()
  for (const command of commandsTopic.commands) digest.add({ ...command, fileHash: null })
  assert.equal(kept.payable, digest.whole)
  const other = new PayableDigest()
  for (const command of commandsTopic.commands)
    other.add({ ...command, fileHash: null, accountNo: '50100999999' })
  await writeFile(path, JSON.stringify({ ...kept, payable: other.whole }))
  assert.equal((await run()).kind, 'published')
  assert.deepEqual(commandsTopic.rowNumbers, [2, 3, 2, 3])
  assert.equal((await run()).kind, 'published-before')
})

test('stopping during the check of the file publishes nothing and leaves no half list', async () => {
  const { folder, commandsTopic, run } = await bench([row(1, 'x'), ...rows(2, 3_000)])
  const abort = new AbortController()
  const ingested = await run(
    {},
    { signal: abort.signal, onBytes: (bytes) => bytes > 65_536 && abort.abort() },
  )
  assert.equal(ingested.kind, 'stopped')
  assert.equal(commandsTopic.opened, 0)
  assert.deepEqual((await readdir(folder)).sort(), ['checkpoints', 'payroll.csv'])
})

test('on a real Kafka every payable row arrives, in the format of the schemas', async (t: TestContext) => {
  const topics = topicNames(`${unique('ingest')}.`)
  await makeTopic(topics.commands, 3)
  await registerSchemas(connectRegistry({ url: registryUrl() }), schemaSubjects(topics))
  const { run } = await bench(rows(1, 1_200))
  const openReal = () =>
    openCommandsTopic({ kafka: kafka(), registry: { url: registryUrl() }, topics, log: silentLogger })
  const types: (string | undefined)[] = []
  const { promise: arrived, resolve } = Promise.withResolvers<void>()
  const reader = readTopics({
    connection: kafka(),
    topics: [topics.commands],
    log: silentLogger,
    onRecord: ({ headers }) => {
      types.push(readHeader(headers, 'ce_type'))
      if (types.length === 1_201) resolve()
    },
  })
  t.after(() => reader.stop())
  assert.equal((await run({}, { openCommandsTopic: openReal })).kind, 'published')
  assert.equal((await run({}, { openCommandsTopic: openReal })).kind, 'published-before')
  await arrived
  assert.equal(types.filter((type) => type === 'in.payoutd.PayoutBatchDeclared').length, 1)
})

test('commands that wait for the end of a transaction count as not taken in yet', async (t) => {
  const topics = topicNames(`${unique('ingest')}.`)
  await makeTopic(topics.commands)
  await registerSchemas(connectRegistry({ url: registryUrl() }), schemaSubjects(topics))
  const transaction = await openTransaction(t, [topics.commands])
  const opened = await openCommandsTopic({
    ...{ kafka: kafka(), registry: { url: registryUrl() }, topics, log: silentLogger },
  })
  t.after(() => opened.close())
  assert.equal((await opened.ends())[0]?.high, 1n)
  await transaction.abort()
})

test('a file whose last line has no end is published only if its sum is given, or somebody agrees', async () => {
  const { path, commandsTopic, run } = await bench(rows(1, 2))
  await writeFile(path, [HEADER, row(1), row(2, '50')].join('\r\n'))
  const refused = await run({}, { agrees: async () => false })
  assert.deepEqual([refused.kind, 'mayBeCutOff' in refused && refused.mayBeCutOff], ['batch-differs', true])
  assert.match(report(refused), /the last line of the file has no line end/)
  assert.equal(commandsTopic.commands.length, 0)
  const sum = await run({ expected: { rows: null, amount: paise(100_000n) } })
  assert.equal(sum.kind, 'totals-differ')
  const given = await run({ expected: { rows: null, amount: paise(55_000n) } })
  assert.equal(given.kind, 'published')
})
