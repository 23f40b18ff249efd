import { inspect } from 'node:util'
import { everyText, onScreen, visible } from '../text/text.ts'

/**
 * The only way for a command to write results to stdout. Characters that a terminal would obey are spelled out, as `visible`
 * does.
 */
export const print = (text: string): void => console.log(onScreen(text))

/** The same to stderr: remarks, questions and errors. */
export const note = (text: unknown): void =>
  console.error(onScreen(typeof text === 'string' ? text : inspect(text)))

/** Resolves once a reader, however slow, has taken all output, or nobody reads it. */
export async function allTaken(): Promise<void> {
  const streams = [process.stdout, process.stderr]
  await Promise.all(
    streams.map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))),
  )
}

/** A drawing of our own, which may control the terminal. */
export const printDrawing = (drawing: string): void => console.log(drawing)
export const noteDrawing = (drawing: string): void => console.error(drawing)

/**
 * Prepares values from the ledger, Kafka or the gateway for lines for people: each text in them becomes one line, so that none
 * looks like a line of ours.
 */
export const inLines = <T>(value: T): T => everyText(value, visible)
