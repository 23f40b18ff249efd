import { copyFile, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { writeExample } from '../example/files.ts'
import { expectationsPath } from './expectations.ts'

/** Which payroll to pay: a file, an example of so many rows, or this repository's example. */
export type PayrollChoice = { file?: string; rows?: number }

const EXAMPLE = path.resolve(import.meta.dirname, '../../../examples/payroll-2026-11.csv')
const SEED = 2026

/**
 * Puts the payroll and its expectations into `folder`, where payoutd can write lists beside it. Returns its path
 * there, and the name by which a person knows it.
 */
export async function placePayroll(
  { file, rows }: PayrollChoice,
  folder: string,
): Promise<{ payrollPath: string; name: string }> {
  await mkdir(folder, { recursive: true })
  if (file === undefined && rows !== undefined) {
    const payrollPath = path.join(folder, `payroll-${rows}.csv`)
    await writeExample(payrollPath, rows, SEED)
    return { payrollPath, name: `a generated payroll of ${rows} rows` }
  }
  const source = file ?? EXAMPLE
  const payrollPath = path.join(folder, path.basename(source))
  await copyFile(source, payrollPath)
  await copyFile(expectationsPath(source), expectationsPath(payrollPath)).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    },
  )
  return { payrollPath, name: path.relative('', source) }
}
