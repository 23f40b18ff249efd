import { formatRupees, type Paise } from '../payout/money.ts'
import type { Clock } from '../platform/clock.ts'
import { checkPayroll, type Summary } from './check.ts'
import { Checkpoint } from './checkpoint.ts'
import type { Outlet } from './outlet.ts'
import type { Payroll } from './payroll.ts'
import { publishPayroll } from './publish.ts'
import { UnreadableFile } from './records.ts'
import { RefusedFile } from './refused-file.ts'
import type { RowSet } from './row-set.ts'

export type IngestRequest = {
  payroll: Payroll
  /** Totals over all rows of the file, as a spreadsheet shows them, from whoever sent it; null: not given. */
  expected: { rows: number | null; amount: Paise | null }
  /** Publish the payable rows although others are refused. */
  publishValidRows: boolean
  dryRun: boolean
}

export type IngestDeps = {
  /** Called only when something is to be published. */
  openOutlet: () => Promise<Outlet>
  checkpointFolder: string
  clock: Clock
  /** Aborted: stops at once while checking, and after the request under way while publishing. */
  signal: AbortSignal
  onBytes: (bytes: number) => void
  onPublished: (rows: number, of: number) => void
}

type Checked = { summary: Summary; refusedFile: string | null }

/** What an ingest came to. Only the last three have published anything. */
export type Ingested =
  | { kind: 'unreadable'; faults: readonly string[] }
  | { kind: 'stopped' }
  | ({ kind: 'totals-differ'; differences: string[] } & Checked)
  | ({ kind: 'rows-refused' } & Checked)
  | ({ kind: 'nothing-payable' } & Checked)
  | ({ kind: 'dry-run' } & Checked)
  | ({ kind: 'published-before'; checkpoint: string } & Checked)
  | ({ kind: 'interrupted'; published: number } & Checked)
  | ({ kind: 'published'; resumedAfter: number } & Checked)

/**
 * Brings a payroll file in. The whole file is checked before anything of it is published; publishing can be
 * interrupted at any point, and the same request goes on. The same file for the same batch can be ingested
 * any number of times: its rows have the same payoutIds and are paid once. Throws when the file, Kafka or
 * the registry cannot be reached, or when the file changes meanwhile.
 */
export async function ingest(request: IngestRequest, deps: IngestDeps): Promise<Ingested> {
  const read = await check(request, deps)
  if ('kind' in read) return read
  const { summary, payable, refusedFile } = read
  const checked: Checked = { summary, refusedFile }
  const differences = compare(request.expected, summary)
  if (differences.length > 0) return { kind: 'totals-differ', differences, ...checked }
  if (summary.refused.rows > 0 && !request.publishValidRows) return { kind: 'rows-refused', ...checked }
  if (summary.payable.rows === 0) return { kind: 'nothing-payable', ...checked }
  if (request.dryRun) return { kind: 'dry-run', ...checked }

  const outlet = await deps.openOutlet()
  try {
    return { ...(await publish(request, deps, outlet, summary, payable)), ...checked }
  } finally {
    await outlet.close()
  }
}

type Unchecked = Extract<Ingested, { kind: 'unreadable' | 'stopped' }>

async function check(
  { payroll }: IngestRequest,
  { onBytes, signal }: IngestDeps,
): Promise<(Checked & { payable: RowSet }) | Unchecked> {
  const refused = new RefusedFile(payroll.path)
  try {
    const { summary, payable } = await checkPayroll(payroll, {
      onRefused: refused.add,
      onBytes: (bytes) => {
        signal.throwIfAborted()
        onBytes(bytes)
      },
    })
    return { summary, payable, refusedFile: await refused.close() }
  } catch (error) {
    await refused.discard()
    if (error instanceof UnreadableFile) return { kind: 'unreadable', faults: error.faults }
    if (signal.aborted) return { kind: 'stopped' }
    throw error
  }
}

type Outcome =
  | { kind: 'published-before'; checkpoint: string }
  | { kind: 'interrupted'; published: number }
  | { kind: 'published'; resumedAfter: number }

async function publish(
  { payroll }: IngestRequest,
  { checkpointFolder, clock, signal, onPublished }: IngestDeps,
  outlet: Outlet,
  summary: Summary,
  payable: RowSet,
): Promise<Outcome> {
  const { rows, amount } = summary.payable
  const identity = { ...outlet.destination, ...payroll.batch, fileHash: summary.fileHash }
  const checkpoint = new Checkpoint(checkpointFolder, identity)
  const before = await checkpoint.load(summary.payable)
  if (before?.published === rows) return { kind: 'published-before', checkpoint: checkpoint.path }
  const progress = before ?? { declaredAt: clock.now(), rows, amount: String(amount), published: 0 }
  const published = await publishPayroll({
    payroll,
    summary,
    payable,
    progress,
    checkpoint,
    outlet,
    signal,
    onPublished: (done) => onPublished(done, rows),
  })
  return published < rows
    ? { kind: 'interrupted', published }
    : { kind: 'published', resumedAfter: progress.published }
}

function compare({ rows, amount }: IngestRequest['expected'], { all, unreadableAmounts }: Summary): string[] {
  const differences: string[] = []
  if (rows !== null && rows !== all.rows) differences.push(`expected ${rows} rows, the file has ${all.rows}`)
  if (amount !== null && amount !== all.amount) {
    differences.push(
      `expected ${formatRupees(amount)} in all, the file adds up to ${formatRupees(all.amount)}${unread(unreadableAmounts)}`,
    )
  }
  return differences
}

const unread = (amounts: number): string =>
  amounts === 0 ? '' : ` (amounts that cannot be read: ${amounts})`
