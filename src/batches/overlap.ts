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
import type { PayrollTotals } from './file/check-file.ts'
import type { RowSet } from './file/row-set.ts'
import { PayoutIds } from './payout-ids.ts'
import { type Payroll, readPayroll } from './payroll.ts'
import { overlapOf, pageOfTakenIn } from './sql/overlap.ts'

/**
 * What a file and its batch have in common. `batch`: the accepted payouts of the batch that are paid or may yet be; `missing`:
 * those of them that the file does not have. Of the file's rows, `same` were accepted, `changed` were accepted with another
 * amount or payee, and `fresh` were not accepted; `unpaid` of those that were accepted have ended unpaid. `lacked`: how many rows
 * that an earlier run published were not. `behind`: commands that intake has yet to store, which may belong to the batch.
 * `cancelled`: who cancelled the batch, and why, so that payoutd cancels what arrives of it; null: nobody did.
 */
export type Overlap = {
  kind: 'compared'
  batch: PayrollTotals
  missing: PayrollTotals
  same: PayrollTotals
  changed: PayrollTotals
  unpaid: PayrollTotals
  fresh: PayrollTotals
  lacked: number
  behind: bigint
  cancelled: string | null
}

/** `unknown`: the ledger did not answer; `why` says the reason in words. */
export type OverlapComparison = Overlap | { kind: 'unknown'; why: string }

/**
 * A file, and its payable rows. `published`: how many of them, from the first, an earlier run published. `ends`: the end offsets
 * of the commands topic; null: the comparison does not wait for intake.
 */
export type Compared = {
  payroll: Payroll
  payable: RowSet
  totals: PayrollTotals
  published: number
  ends: { topic: string; partitions: readonly PartitionEnd[] } | null
}

export type CompareDeps = { db: Database; fingerprintKey: KeyObject; clock: Clock; signal: AbortSignal }

/** Whether the file may pay more, or less, than its sender thinks. */
export const isDoubtful = (comparison: OverlapComparison): boolean => {
  if (comparison.kind === 'unknown' || comparison.behind > 0n || comparison.cancelled !== null) return true
  const { changed, fresh, missing } = comparison
  return changed.rows > 0 || (fresh.rows > 0 && missing.rows > 0)
}

const ROWS_AT_ONCE = 1_000
/** The longest time that a running payoutd needs to store the commands on their way. */
const TAKEN_IN_MS = 10_000
const LOOK_EVERY_MS = 200

/** Asks the ledger what the file's batch already has, once intake has stored the commands on their way, or after 10 s. */
export async function compareWithBatch(
  { payroll, payable, totals, published, ends }: Compared,
  deps: CompareDeps,
): Promise<Overlap> {
  const behind = ends === null ? 0n : await untilTakenIn(ends, payroll.batch.merchantId, deps)
  const { db, fingerprintKey, signal } = deps
  const { merchantId, batchId } = payroll.batch
  const of = { merchantId, batchId }
  const isThere = (await db.run(pageOfTakenIn, { ...of, after: '', limit: 1 })).length > 0
  const inFile = new PayoutIds()
  let [same, changed, unpaid] = [NOTHING, NOTHING, NOTHING]
  let [read, lacked] = [0, published]
  for await (const commands of isThere ? payableOf(payroll, payable, published) : []) {
    signal.throwIfAborted()
    for (const { payoutId } of commands) inFile.add(payoutId)
    const [some] = await db.run(overlapOf, {
      merchantId,
      named: commands.map((command) => ({ ...command, fingerprint: fingerprint(command, fingerprintKey) })),
    })
    same = plus(same, some?.sameRows, some?.sameAmount)
    changed = plus(changed, some?.otherRows, some?.otherAmount)
    unpaid = plus(unpaid, some?.unpaidRows, some?.unpaidAmount)
    read += commands.length
    if (read <= published) lacked = published - same.rows - changed.rows
  }
  // One statement decides about a payout: it may end or arrive while the file is read.
  let [batch, missing] = [NOTHING, NOTHING]
  for await (const page of isThere ? pages((page) => db.run(pageOfTakenIn, { ...of, ...page })) : []) {
    for (const { payoutId, amount, isOpen } of page) {
      if (!isOpen) continue
      batch = plus(batch, 1, amount)
      if (!inFile.has(payoutId)) missing = plus(missing, 1, amount)
    }
  }
  const known = plus(same, changed.rows, changed.amount)
  const fresh = minus(totals, known)
  const cancelled = await cancellationOf(of, db)
  return {
    kind: 'compared',
    batch,
    missing,
    same,
    changed,
    unpaid,
    fresh,
    lacked,
    behind,
    cancelled,
  }
}

/** Who cancelled the batch, and why; null: nobody did. */
export async function cancellationOf(
  { merchantId, batchId }: { merchantId: string; batchId: string },
  db: Database,
): Promise<string | null> {
  const [cancelled] = await db.run(cancelledBatches, { batches: [{ merchantId, batchId }] })
  return cancelled?.why ?? null
}

const NOTHING: PayrollTotals = { rows: 0, amount: ZERO }

const plus = (one: PayrollTotals, rows = 0, amount = 0n): PayrollTotals => ({
  rows: one.rows + rows,
  amount: paise(one.amount + amount),
})

const minus = (one: PayrollTotals, { rows, amount }: PayrollTotals): PayrollTotals =>
  plus(one, -rows, -amount)

/** Returns how many commands, which may be the merchant's, intake has not stored at the end of the wait. */
async function untilTakenIn(
  { topic, partitions }: NonNullable<Compared['ends']>,
  merchantId: string,
  { db, clock, signal }: CompareDeps,
): Promise<bigint> {
  const until = clock.monotonic() + TAKEN_IN_MS
  for (;;) {
    const behind = await intakeBacklog({ topic, ends: partitions, merchantIds: [merchantId] }, db)
    if (behind === 0n || clock.monotonic() >= until) return behind
    await pause(LOOK_EVERY_MS, signal)
    signal.throwIfAborted()
  }
}

/** What a file asks for, some rows at a time: those that an earlier run published, then the others. */
async function* payableOf(
  payroll: Payroll,
  payable: RowSet,
  published: number,
): AsyncGenerator<PayoutCommand[]> {
  let commands: PayoutCommand[] = []
  let read = 0
  for await (const row of readPayroll(payroll, () => undefined)) {
    if (row.kind !== 'payable' || !payable.has(row.row)) continue
    commands.push(row.command)
    if (++read !== published && commands.length < ROWS_AT_ONCE) continue
    yield commands
    commands = []
  }
  if (commands.length > 0) yield commands
}
