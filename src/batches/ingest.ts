import { formatRupees, type Paise } from '../domain/money.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Clock } from '../platform/running/clock.ts'
import { Checkpoint, type Destination } from './checkpoint.ts'
import type { CommandsTopic } from './commands-topic.ts'
import { checkPayroll, type Summary } from './file/check-file.ts'
import { UnreadableFile } from './file/csv-records.ts'
import type { PayableDigest } from './file/payable-digest.ts'
import type { RowSet } from './file/row-set.ts'
import { ListFile } from './list-file.ts'
import { lockPayroll } from './lock-payroll.ts'
import { type Compared, isDoubtful, type OverlapComparison } from './overlap.ts'
import type { Payroll } from './payroll.ts'
import { publishPayroll } from './publish.ts'
import { RefusedFile } from './refused-file.ts'

export type IngestRequest = {
  payroll: Payroll
  /** Totals over all rows of the file, as a spreadsheet shows them, from the sender of the file; null: not given. */
  expected: { rows: number | null; amount: Paise | null }
  /** Publish the payable rows even if others are refused. */
  publishValidRows: boolean
  dryRun: boolean
}

export type IngestDeps = {
  /** Called only if there is something to publish. */
  openCommandsTopic: () => Promise<CommandsTopic>
  checkpointFolder: string
  /** Finds what the ledger already has of the batch. */
  compare: (compared: Compared) => Promise<OverlapComparison>
  /** Who cancelled the batch, and why; null: nobody did, or the ledger does not answer. */
  cancellation: () => Promise<string | null>
  /** Whether to publish a file although it may be cut off, or does not match its batch: see `isDoubtful`. */
  agrees: (doubts: Doubts) => Promise<boolean>
  /** Called before anything is published, but not if an earlier run published everything. */
  onBegin: (summary: Summary) => Promise<void>
  clock: Clock
  /** When aborted, the ingest stops at once while checking, and after the request under way while publishing. */
  signal: AbortSignal
  onBytes: (bytes: number) => void
  onPublished: (rows: number, of: number) => void
}

/** What a person should look at. `mayBeCutOff`: nothing shows that the file is whole. */
export type Doubts = { comparison: OverlapComparison; mayBeCutOff: boolean }

/** `published`: how many payouts an earlier run published. */
type BatchDiffers = Doubts & { published: number }

type Checked = { summary: Summary; refusedFile: string | null }

/**
 * `payoutsFile` lists every payout of the file, including those that an earlier run published. `cancelled`: who has cancelled the
 * batch, and why, so that payoutd pays nothing that arrives of it; null: nobody did, as far as is known. `comparison`: what the
 * ledger had before this run published anything.
 */
type IngestOutcome = { cancelled: string | null } & (
  | { kind: 'published-before'; checkpoint: string; payoutsFile: string; comparison: OverlapComparison }
  | { kind: 'interrupted'; published: number }
  | { kind: 'published'; resumedAfter: number; payoutsFile: string; comparison: OverlapComparison }
)

/** The result of an ingest. */
export type Ingested =
  | { kind: 'unreadable'; faults: readonly string[] }
  | { kind: 'stopped' }
  | ({ kind: 'totals-differ'; differences: string[] } & Checked)
  | ({ kind: 'rows-refused' } & Checked)
  | ({ kind: 'nothing-payable' } & Checked)
  | ({ kind: 'dry-run' } & Doubts & Checked)
  | ({ kind: 'batch-differs' } & BatchDiffers & Checked)
  | (IngestOutcome & Checked)

/**
 * Ingests a payroll file. It checks the whole file before it publishes anything. Publishing can be interrupted at any point, and
 * the same request resumes it. The same file for the same batch can be ingested any number of times: its rows have the same
 * payoutIds and are paid once. Rows that an earlier run published, but that were lost before intake stored them, are published
 * again. A file that does not match what its batch already has is published only if somebody agrees. Throws if another ingest
 * checks or publishes the file, if the file, Kafka or the registry cannot be reached, or if the file changes meanwhile.
 */
export async function ingest(request: IngestRequest, deps: IngestDeps): Promise<Ingested> {
  // Two ingests at once would write the same lists beside the file.
  const lock = await lockPayroll(request.payroll.path, deps.checkpointFolder)
  try {
    return await ingestLocked(request, deps)
  } catch (error) {
    if (deps.signal.aborted && error === deps.signal.reason) return { kind: 'stopped' }
    const { code = '' } = error as NodeJS.ErrnoException
    throw NO_ROOM.has(code) ? unwritable(code, request.payroll.path, error) : error
  } finally {
    lock.release()
  }
}

/** Codes of Node's that only files have. */
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS', 'EIO'])

const unwritable = (code: string, path: string, cause: unknown): ExpectedFailure =>
  new ExpectedFailure(
    `ingest cannot write its lists beside ${path}, or its progress (${code}). What it has published stays so: make room, and ` +
      'run the same command again to continue',
    { cause },
  )

async function ingestLocked(request: IngestRequest, deps: IngestDeps): Promise<Ingested> {
  if (!request.dryRun) await ListFile.delete(payoutsFile(request.payroll), 'payouts')
  const read = await check(request, deps)
  if ('kind' in read) return read
  const { summary, payable, digest, refusedFile } = read
  const checked: Checked = { summary, refusedFile }
  const differences = differencesOf(request.expected, summary)
  if (differences.length > 0) return { kind: 'totals-differ', differences, ...checked }
  if (summary.refused.rows > 0 && !request.publishValidRows) return { kind: 'rows-refused', ...checked }
  if (summary.payable.rows === 0) return { kind: 'nothing-payable', ...checked }
  const { payroll } = request
  if (request.dryRun) {
    const compared = { payroll, payable, totals: summary.payable, published: 0, ends: null }
    const comparison = await deps.compare(compared)
    return { kind: 'dry-run', comparison, mayBeCutOff: mayBeCutOff(request, summary), ...checked }
  }

  const commandsTopic = await deps.openCommandsTopic()
  try {
    return { ...(await publish(request, deps, commandsTopic, { summary, payable, digest })), ...checked }
  } finally {
    await commandsTopic.close()
  }
}

const payoutsFile = ({ path }: Payroll): string => `${path}.payouts.csv`
const PAYOUT_COLUMNS = ['row', 'reference', 'payoutId']

/** Which rows are payable, and what they pay. */
type Payable = { payable: RowSet; digest: PayableDigest }

type Unchecked = Extract<Ingested, { kind: 'unreadable' | 'stopped' }>

async function check(
  { payroll }: IngestRequest,
  { onBytes, signal }: IngestDeps,
): Promise<(Checked & Payable) | Unchecked> {
  const refused = new RefusedFile(payroll.path)
  await refused.deleteOlder()
  try {
    const { summary, payable, digest } = await checkPayroll(payroll, {
      onRefused: refused.add,
      onBytes: (bytes) => {
        signal.throwIfAborted()
        onBytes(bytes)
      },
    })
    return { summary, payable, digest, refusedFile: await refused.complete() }
  } catch (error) {
    await refused.discard()
    if (error instanceof UnreadableFile) return { kind: 'unreadable', faults: error.faults }
    if (signal.aborted) return { kind: 'stopped' }
    throw error
  }
}

async function publish(
  request: IngestRequest,
  { checkpointFolder, compare, cancellation, agrees, onBegin, clock, signal, onPublished }: IngestDeps,
  commandsTopic: CommandsTopic,
  { summary, payable, digest }: Payable & { summary: Summary },
): Promise<IngestOutcome | ({ kind: 'batch-differs' } & BatchDiffers)> {
  const { payroll } = request
  const { rows } = summary.payable
  const { referenceFrom } = payroll
  const identity = {
    ...commandsTopic.destination,
    ...payroll.batch,
    referenceFrom,
    fileHash: summary.fileHash,
  }
  const checkpoint = new Checkpoint(checkpointFolder, identity)
  const kept = await checkpoint.load(digest.whole)
  const published = kept?.published ?? 0
  const { topic } = commandsTopic.destination
  const ends = { topic, partitions: await commandsTopic.ends() }
  const comparison = await compare({ payroll, payable, totals: summary.payable, published, ends })
  const { lacked, behind, cancelled } = comparison.kind === 'compared' ? comparison : NOTHING_KNOWN
  const before = lacked > 0 && behind === 0n ? null : kept
  // Somebody agreed to an ingest that has begun, but not to a cancellation since.
  if (before === null || (published < rows && cancelled !== null)) {
    const doubts = { comparison, mayBeCutOff: mayBeCutOff(request, summary) }
    if ((doubts.mayBeCutOff || isDoubtful(comparison)) && !(await agrees(doubts)))
      return { kind: 'batch-differs', ...doubts, published }
  }
  const progress = before ?? { declaredAt: clock.now(), payable: digest.whole, published: 0 }
  if (progress.published < rows) await onBegin(summary)
  const payouts = await ListFile.open(payoutsFile(payroll), 'payouts', PAYOUT_COLUMNS)
  try {
    const done = await publishPayroll({
      payroll,
      summary,
      payable,
      digest,
      progress,
      checkpoint,
      commandsTopic,
      payouts,
      signal,
      onPublished: (acknowledged) => onPublished(acknowledged, rows),
    })
    if (done < rows) return { kind: 'interrupted', published: done, cancelled: await cancellation() }
    if ((await commandsTopic.topicId()) !== commandsTopic.destination.topicId)
      throw madeAgain(commandsTopic.destination)
    await payouts.complete()
  } finally {
    await payouts.discard()
  }
  const ended = { payoutsFile: payouts.path, comparison, cancelled: await cancellation() }
  return progress.published === rows
    ? { kind: 'published-before', checkpoint: checkpoint.path, ...ended }
    : { kind: 'published', resumedAfter: progress.published, ...ended }
}

const NOTHING_KNOWN = { lacked: 0, behind: 0n, cancelled: null }

/** An operator who gives the sum notices if a part of the file is missing. */
const mayBeCutOff = ({ expected }: IngestRequest, { lastLineEnds }: Summary): boolean =>
  !lastLineEnds && expected.amount === null

const madeAgain = ({ topic }: Destination): ExpectedFailure =>
  new ExpectedFailure(
    `the topic ${topic} was deleted and created again while payoutd published this file, so part of it is missing: ` +
      'ingest it again; payoutd pays rows that were published twice only once',
  )

function differencesOf(
  { rows, amount }: IngestRequest['expected'],
  { all, unreadableAmounts }: Summary,
): string[] {
  const differences: string[] = []
  if (rows !== null && rows !== all.rows) differences.push(`expected ${rows} rows, the file has ${all.rows}`)
  if (amount !== null && amount !== all.amount) {
    differences.push(
      `expected ${formatRupees(amount)} in all, the file adds up to ${formatRupees(all.amount)}${notAdded(unreadableAmounts)}`,
    )
  }
  return differences
}

/** A spreadsheet also adds up amounts that no payout can have: -5, or 12000.50. */
const notAdded = (amounts: number): string =>
  amounts === 0
    ? ''
    : `. The rows whose amount cannot be read (also because the row has too many or too few cells), has paise or is negative (${amounts}) are not in this total, though a spreadsheet may count them`
