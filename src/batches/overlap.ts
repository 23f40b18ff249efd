import type { KeyObject } from 'node:crypto'
import type { PayoutCommand } from '../domain/commands/command.ts'
import { fingerprint } from '../domain/identifiers.ts'
import { paise, ZERO } from '../domain/money.ts'
import { intakeBacklog, type PartitionEnd } from '../ledger/intake-backlog.ts'
import { cancelledBatches } from '../ledger/sql/cancels.ts'
import { pages } from '../platform/postgres/pages.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import type { Clock } from '../platform/running/clock.ts'
import { pause } from '../platform/running/lifecycle.ts'
import type { PayrollTotals } from './check-file.ts'
import { type Payroll, readPayroll } from './payroll.ts'
import type { RowSet } from './row-set.ts'
import { overlapOf, pageOfTakenIn } from './sql/overlap.ts'

/**
 * What a file and its batch have in common. `batch`: what was taken in of the batch and is paid, or may be yet; `missing`:
 * what of that the file does not have. Of the file's rows: `same` were taken in, `changed` too, but with another amount or
 * payee, and `fresh` were not. `behind`: commands that payoutd had still to take in, which may be of the batch. `cancelled`: who
 * cancelled the batch, and why, so that what comes of it is cancelled; null: nobody did.
 */
export type Overlap = {
  kind: 'compared'
  batch: PayrollTotals
  missing: PayrollTotals
  same: PayrollTotals
  changed: PayrollTotals
  fresh: PayrollTotals
  behind: bigint
  cancelled: string | null
}

/** `unknown`: the ledger could not be asked, in words why. */
export type OverlapComparison = Overlap | { kind: 'unknown'; why: string }

/** A file, and what of it can be paid. `ends`: where the topic of commands ends; null: it is not waited for. */
export type Compared = {
  payroll: Payroll
  payable: RowSet
  totals: PayrollTotals
  ends: { topic: string; partitions: readonly PartitionEnd[] } | null
}

export type CompareDeps = { db: Database; fingerprintKey: KeyObject; clock: Clock; signal: AbortSignal }

/** Whether more may be paid by the file, or less, than whoever sends it thinks. */
export const isDoubtful = (comparison: OverlapComparison): boolean => {
  if (comparison.kind === 'unknown' || comparison.behind > 0n || comparison.cancelled !== null) return true
  const { changed, fresh, missing } = comparison
  return changed.rows > 0 || (fresh.rows > 0 && missing.rows > 0)
}

const ROWS_AT_ONCE = 1_000
/** What a running payoutd needs at most to take in what is on its way. */
const TAKEN_IN_MS = 10_000
const LOOK_EVERY_MS = 200

/** Asks the ledger what the batch of a file has already, once what is on its way there has been taken in, or 10 s later. */
export async function compareWithBatch(
  { payroll, payable, totals, ends }: Compared,
  deps: CompareDeps,
): Promise<Overlap> {
  const behind = ends === null ? 0n : await untilTakenIn(ends, deps)
  const { db, fingerprintKey, signal } = deps
  const { merchantId, batchId } = payroll.batch
  let isThere = false
  let batch = NOTHING
  for await (const [page] of pages((page) => db.run(pageOfTakenIn, { merchantId, batchId, ...page }))) {
    isThere = true
    batch = plus(batch, page?.openRows, page?.openAmount)
  }
  let [same, changed, open] = [NOTHING, NOTHING, NOTHING]
  for await (const commands of isThere ? payableOf(payroll, payable) : []) {
    signal.throwIfAborted()
    const [some] = await db.run(overlapOf, {
      merchantId,
      payoutIds: commands.map(({ payoutId }) => payoutId),
      amounts: commands.map(({ amount }) => amount),
      fingerprints: commands.map((command) => fingerprint(command, fingerprintKey)),
    })
    same = plus(same, some?.sameRows, some?.sameAmount)
    changed = plus(changed, some?.otherRows, some?.otherAmount)
    open = plus(open, some?.openRows, some?.openAmount)
  }
  const known = plus(same, changed.rows, changed.amount)
  const [missing, fresh] = [minus(batch, open), minus(totals, known)]
  const [cancelled] = await db.run(cancelledBatches, { merchantIds: [merchantId], batchIds: [batchId] })
  return {
    kind: 'compared',
    batch,
    missing,
    same,
    changed,
    fresh,
    behind,
    cancelled: cancelled?.why ?? null,
  }
}

const NOTHING: PayrollTotals = { rows: 0, amount: ZERO }

const plus = (one: PayrollTotals, rows = 0, amount = 0n): PayrollTotals => ({
  rows: one.rows + rows,
  amount: paise(one.amount + amount),
})

const minus = (one: PayrollTotals, { rows, amount }: PayrollTotals): PayrollTotals =>
  plus(one, -rows, -amount)

/** How many commands that stand in the topic are not taken in yet, in the end. */
async function untilTakenIn(
  { topic, partitions }: NonNullable<Compared['ends']>,
  { db, clock, signal }: CompareDeps,
): Promise<bigint> {
  const until = clock.monotonic() + TAKEN_IN_MS
  for (;;) {
    const behind = await intakeBacklog(topic, partitions, db)
    if (behind === 0n || clock.monotonic() >= until) return behind
    await pause(LOOK_EVERY_MS, signal)
    signal.throwIfAborted()
  }
}

/** What a file asks for, some rows at a time. */
async function* payableOf(payroll: Payroll, payable: RowSet): AsyncGenerator<PayoutCommand[]> {
  let commands: PayoutCommand[] = []
  for await (const row of readPayroll(payroll, () => undefined)) {
    if (row.kind !== 'payable' || !payable.has(row.row)) continue
    commands.push(row.command)
    if (commands.length < ROWS_AT_ONCE) continue
    yield commands
    commands = []
  }
  if (commands.length > 0) yield commands
}
