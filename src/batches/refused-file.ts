import type { RefusedRow } from './file/check-file.ts'
import { ListFile } from './list-file.ts'

const NAME = 'refused rows'
const COLUMNS = ['row', 'reference', 'column', 'rule', 'what is wrong', 'found']

/**
 * The list of refused rows beside a payroll file, one line per fault, to correct the payroll file by. It masks bank details.
 */
export class RefusedFile {
  readonly #path: string
  #list: ListFile | undefined

  constructor(payrollPath: string) {
    this.#path = `${payrollPath}.refused.csv`
  }

  /** Deletes the list of an earlier run. */
  deleteOlder(): Promise<void> {
    return ListFile.delete(this.#path, NAME)
  }

  readonly add = async ({ row, reference, faults }: RefusedRow): Promise<void> => {
    this.#list ??= await ListFile.open(this.#path, NAME, COLUMNS)
    for (const { column, rule, message, found } of faults) {
      await this.#list.add([String(row), reference ?? '', column, rule, message, found])
    }
  }

  /** Returns the path, or null if no row was refused. */
  async complete(): Promise<string | null> {
    if (!this.#list) return null
    await this.#list.complete()
    return this.#path
  }

  /** Deletes an incomplete list. */
  async discard(): Promise<void> {
    await this.#list?.discard()
  }
}
