import { createInterface } from 'node:readline/promises'
import { onScreen } from '../text/text.ts'
import { note } from './print.ts'

/** Asks on the terminal; anything but y or yes means no. Ctrl-C and Ctrl-D end the process, which has not begun anything yet. */
export async function agreed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(onScreen(`${question} [y/N] `))).trim())
  } catch (error) {
    if (!(error instanceof Error && error.name === 'AbortError')) throw error
    note('\nnothing was done')
    process.exit(130)
  } finally {
    terminal.close()
  }
}
