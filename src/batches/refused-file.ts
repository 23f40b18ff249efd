import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { RefusedRow } from './check.ts'

const FLUSH_AT = 64 * 1024
/** UTF-8 with its mark, so that spreadsheets read names in any script. */
const HEADER = '\ufeffrow,reference,column,rule,what is wrong,found\r\n'

/**
 * The list of refused rows beside a payroll file, a line per fault, to correct the payroll file by. Bank
 * details are masked. It appears once it is complete, and an older one goes away when nothing is refused.
 */
export class RefusedFile {
  readonly path: string
  #file: FileHandle | undefined
  #waiting = HEADER

  constructor(payrollPath: string) {
    this.path = `${payrollPath}.refused.csv`
  }

  readonly add = async ({ row, reference, faults }: RefusedRow): Promise<void> => {
    for (const { column, rule, message, found } of faults) {
      const cells = [String(row), reference ?? '', column, rule, message, found]
      this.#waiting += `${cells.map(cell).join(',')}\r\n`
    }
    if (this.#waiting.length >= FLUSH_AT) await this.#flush()
  }

  /** Returns the path, or null when nothing was refused. */
  async close(): Promise<string | null> {
    if (this.#waiting === HEADER) {
      await rm(this.path, { force: true })
      return null
    }
    await this.#flush()
    await this.#file?.close()
    await rename(this.#partial, this.path)
    return this.path
  }

  /** Leaves nothing behind of a list that is not complete. */
  async discard(): Promise<void> {
    await this.#file?.close()
    await rm(this.#partial, { force: true })
  }

  async #flush(): Promise<void> {
    this.#file ??= await this.#open()
    await this.#file.write(this.#waiting)
    this.#waiting = ''
  }

  async #open(): Promise<FileHandle> {
    try {
      return await open(this.#partial, 'w')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const message = `the list of refused rows, ${this.path}, cannot be written (${code}): nothing is published`
      throw new ExpectedFailure(`${message}. Let the user that runs payoutd write to that folder`, {
        cause: error,
      })
    }
  }

  get #partial(): string {
    return `${this.path}.partial`
  }
}

/** Quoted as needed; what a spreadsheet would run as a formula is made plain text. */
function cell(text: string): string {
  const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}
