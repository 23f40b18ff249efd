import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { partialOf } from '../platform/partial-file.ts'
import { visible } from '../text/text.ts'

const FLUSH_AT = 64 * 1024
/** Precedes UTF-8, so that spreadsheets read names in any script. */
const MARK = '\ufeff'

/** A list beside a payroll file, as CSV for spreadsheets. It appears only when it is complete. */
export class ListFile {
  readonly path: string
  readonly #partial: string
  readonly #file: FileHandle
  #waiting: string

  /** Throws an ExpectedFailure, which calls the list `name`, if it cannot be written there. */
  static async open(path: string, name: string, columns: readonly string[]): Promise<ListFile> {
    const partial = partialOf(path)
    try {
      return new ListFile(path, partial, await open(partial, 'wx'), MARK + line(columns))
    } catch (error) {
      throw unwritable(path, name, error)
    }
  }

  /** Deletes the list of an earlier run, if there is one. Throws an ExpectedFailure if that is not possible. */
  static async delete(path: string, name: string): Promise<void> {
    try {
      await rm(path, { force: true })
    } catch (error) {
      throw unwritable(path, name, error)
    }
  }

  private constructor(path: string, partial: string, file: FileHandle, header: string) {
    this.path = path
    this.#partial = partial
    this.#file = file
    this.#waiting = header
  }

  async add(cells: readonly string[]): Promise<void> {
    this.#waiting += line(cells)
    if (this.#waiting.length >= FLUSH_AT) await this.#flush()
  }

  /** Puts the list in the place of an older one. */
  async complete(): Promise<void> {
    await this.#flush()
    await this.#file.close()
    await rename(this.#partial, this.path)
  }

  /** Deletes an incomplete list; an older one stays. */
  async discard(): Promise<void> {
    await this.#file.close()
    await rm(this.#partial, { force: true })
  }

  async #flush(): Promise<void> {
    // `write` may write only a part and report that.
    await this.#file.appendFile(this.#waiting)
    this.#waiting = ''
  }
}

function unwritable(path: string, name: string, cause: unknown): ExpectedFailure {
  const { code } = cause as NodeJS.ErrnoException
  const message = `ingest cannot write the list of ${name}, ${path} (${code}): it published nothing`
  return new ExpectedFailure(`${message}. Let the user that runs payoutd write to that folder`, { cause })
}

const line = (cells: readonly string[]): string => `${cells.map(cell).join(',')}\r\n`

/** Characters that begin a formula in a spreadsheet, in East Asian width too. */
const FORMULA = /^[=+\-@＝＋－＠]/

/** Quotes a cell if necessary, on one line; turns anything that a spreadsheet would run as a formula into plain text. */
function cell(given: string): string {
  const text = visible(given)
  // Some spreadsheets part a line at semicolons, too.
  const plain = (FORMULA.test(text) ? `'${text}` : text).replace(/;(?=\s{0,9}[=+\-@＝＋－＠])/g, ";'")
  return /[",]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}
