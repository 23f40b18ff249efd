import { checkPayroll, type RefusedRow, type Summary } from '../../../src/batches/file/check-file.ts'
import { UnreadableFile } from '../../../src/batches/file/csv-records.ts'
import { type Payroll, readPayroll } from '../../../src/batches/payroll.ts'
import { ExpectedFailure } from '../../../src/platform/expected-failure.ts'
import { payeeOf, type RequestedPayout } from '../../oracle/outcome.ts'

/** What a payroll file requests, known before payoutd gets it. */
export type PayrollRows = { summary: Summary; asked: RequestedPayout[]; refused: RefusedRow[] }

/** Reads a payroll file by the rules of `payoutd ingest`. Throws an ExpectedFailure when it cannot be read. */
export async function readPayrollRows(payroll: Payroll): Promise<PayrollRows> {
  try {
    return await readRows(payroll)
  } catch (error) {
    throw error instanceof UnreadableFile
      ? new ExpectedFailure(`the payroll cannot be read: ${error.message}`)
      : error
  }
}

async function readRows(payroll: Payroll): Promise<PayrollRows> {
  const refused: RefusedRow[] = []
  const asked: RequestedPayout[] = []
  const { summary, payable } = await checkPayroll(payroll, {
    onRefused: async (row) => void refused.push(row),
    onBytes: () => undefined,
  })
  for await (const row of readPayroll(payroll, () => undefined)) {
    if (row.kind !== 'payable' || !payable.has(row.row)) continue
    const { merchantId, payoutId, amount } = row.command
    asked.push({ merchantId, payoutId, amount, payee: payeeOf(row.command), row: row.row })
  }
  return { summary, asked, refused }
}
