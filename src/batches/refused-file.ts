import { rm } from 'node:fs/promises'
import type { RefusedRow } from './check-file.ts'
import { ListFile } from './list-file.ts'

const COLUMNS = ['row', 'reference', 'column', 'rule', 'what is wrong', 'found']

/**
 * The list of refused rows beside a payroll file, one line per fault, to correct the payroll file by. It masks bank details. An
 * older list is deleted if no row is refused.
 */
export class RefusedFile {
  readonly #path: string
  #list: ListFile | undefined

  constructor(payrollPath: string) {
    this.#path = `${payrollPath}.refused.csv`
  }

  readonly add = async ({ row, reference, faults }: RefusedRow): Promise<void> => {
    this.#list ??= await ListFile.open(this.#path, 'refused rows', COLUMNS)
    for (const { column, rule, message, found } of faults) {
      await this.#list.add([String(row), reference ?? '', column, rule, message, found])
    }
  }

  /** Returns the path, or null if no row was refused. */
  async complete(): Promise<string | null> {
    if (!this.#list) {
      await rm(this.#path, { force: true })
      return null
    }
    await this.#list.complete()
    return this.#path
  }

  /** Deletes an incomplete list. */
  async discard(): Promise<void> {
    await this.#list?.discard()
  }
}
