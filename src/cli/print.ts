import { inspect } from 'node:util'
import { everyText, onScreen, visible } from '../text/text.ts'

/** The one way of a command to stdout: results. What a terminal would obey is written out, as `visible` does. */
export const print = (text: string): void => console.log(onScreen(text))

/** The same to stderr: remarks, questions and what went wrong. */
export const note = (text: unknown): void =>
  console.error(onScreen(typeof text === 'string' ? text : inspect(text)))

/** Resolves once everything that was printed has been taken, by whoever reads it as slowly as they like, or is read by nobody. */
export async function allTaken(): Promise<void> {
  const streams = [process.stdout, process.stderr]
  await Promise.all(
    streams.map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))),
  )
}

/** A drawing of our own, which may tell the terminal what it likes. */
export const printDrawing = (drawing: string): void => console.log(drawing)
export const noteDrawing = (drawing: string): void => console.error(drawing)

/**
 * What was read from the ledger, Kafka or the gateway, to be put into lines for people: each text in it is one line, so
 * that none looks like a line of ours.
 */
export const inLines = <T>(value: T): T => everyText(value, visible)
