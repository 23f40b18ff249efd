import { type Paise, paise, ZERO } from '../../domain/money.ts'
import { type Payroll, readPayroll, type Whole } from '../payroll.ts'
import { PayableDigest } from './payable-digest.ts'
import { type PayrollRow, shown } from './row.ts'
import { RowSet } from './row-set.ts'
import { SeenRows } from './seen-rows.ts'

/** Rows and the sum of their amounts in paise. */
export type PayrollTotals = { rows: number; amount: Paise }

/** What a file holds. Every row is in exactly one of `payable`, `refused` and `repeated`. */
export type Summary = Whole & {
  all: PayrollTotals
  payable: PayrollTotals
  refused: PayrollTotals
  repeated: PayrollTotals
  /** Refused rows that are in no total: of another width, or with an amount that cannot be read, has paise or is negative. */
  unreadableAmounts: number
}

export type RefusedRow = Extract<PayrollRow, { kind: 'refused' }>

/**
 * Reads the whole file once and finds what is payable, what is refused and why, and what repeats an earlier row. Calls
 * `onRefused` with every refused row. Throws UnreadableFile if the file as a whole cannot be read.
 */
export async function checkPayroll(
  payroll: Payroll,
  { onRefused, onBytes }: { onRefused: (row: RefusedRow) => Promise<void>; onBytes: (bytes: number) => void },
): Promise<{ summary: Summary; payable: RowSet; digest: PayableDigest }> {
  const seen = new SeenRows()
  const payable = new RowSet()
  const digest = new PayableDigest()
  const totals = { payable: new PayrollTally(), refused: new PayrollTally(), repeated: new PayrollTally() }
  let unreadableAmounts = 0
  const rows = readPayroll(payroll, onBytes)
  try {
    let next = await rows.next()
    for (; !next.done; next = await rows.next()) {
      const row = check(next.value, seen)
      switch (row.kind) {
        case 'payable':
          payable.add(row.row)
          digest.add(row.command)
          totals.payable.add(row.command.amount)
          break
        case 'repeated':
          totals.repeated.add(row.amount)
          break
        case 'refused':
          if (row.amount === null) unreadableAmounts++
          totals.refused.add(row.amount)
          await onRefused(row)
      }
    }
    const all = new PayrollTally()
    for (const tally of Object.values(totals)) all.include(tally)
    return { summary: { ...(next.value as Whole), all, ...totals, unreadableAmounts }, payable, digest }
  } finally {
    await rows.return(undefined)
    seen.close()
  }
}

type CheckedRows = Exclude<PayrollRow, { kind: 'blank' }> | { kind: 'repeated'; amount: Paise }

/** The second row with a reference pays nothing; if its content differs from the first, it is a mistake. */
function check(row: Exclude<PayrollRow, { kind: 'blank' }>, seen: SeenRows): CheckedRows {
  if (row.kind === 'refused') {
    if (row.payoutId !== null) seen.refuse(row.payoutId, row.row)
    return row
  }
  const { command, reference } = row
  const before = seen.meet(command, row.row)
  if (before === null) return row
  if (before.same) return { kind: 'repeated', amount: command.amount }
  const fault = {
    column: 'reference',
    rule: 'reference-reused',
    message: `row ${before.row} has the same reference, and is refused or has another beneficiary or amount`,
    found: shown(reference),
  }
  const { payoutId, amount } = command
  return { kind: 'refused', row: row.row, reference: shown(reference), payoutId, amount, faults: [fault] }
}

class PayrollTally implements PayrollTotals {
  rows = 0
  amount: Paise = ZERO
  add(amount: Paise | null): void {
    this.rows++
    this.amount = paise(this.amount + (amount ?? 0n))
  }
  include({ rows, amount }: PayrollTotals): void {
    this.rows += rows
    this.amount = paise(this.amount + amount)
  }
}
