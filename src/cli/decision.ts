import { type Command, InvalidArgumentError } from 'commander'
import { MOST } from '../domain/limits.ts'
import { scrub, scrubName } from '../domain/mask.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { agreed } from './agreed.ts'
import { paiseAsText } from './options/paise-as-text.ts'
import { print } from './print.ts'

/** The options of every command that decides something in a person's name. */
export type DecisionOptions = ActOptions & Decided
/** How the command runs, and prints. */
type ActOptions = { dryRun?: true; yes?: true; json?: true }

export const withDecision = (command: Command): Command =>
  withWho(command)
    .option('--dry-run', 'show what it would do, and change nothing')
    .option('--yes', 'do not ask; needed if there is no terminal')
    .option('--json', 'print the result as JSON; amounts in paise, times in milliseconds since 1970')

/** Every command that changes something has these options: nobody acts without a name. */
export const withWho = (command: Command): Command =>
  command
    .requiredOption('--by <name>', 'who decides, for the record', nameOf)
    .requiredOption('--reason <text>', 'why, for the record', said)

/** A person's reason, without bank details. */
export const said = (text: string): string => scrub(something(text))

/** A person's name. */
export const nameOf = (text: string): string => scrubName(something(text))

function something(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It must say something.')
  if (text.length > MOST.said) throw new InvalidArgumentError(`It must be at most ${MOST.said} characters.`)
  return text.trim()
}

/** What a command would do, or did: a sentence without its full stop, and the same for programs. */
export type ActReport = { text: string; json: object }

/**
 * Whether to proceed: never on a dry run, which only shows; always with `--yes`; else if the person at the terminal agrees.
 * Throws an ExpectedFailure if there is nobody to ask.
 */
export async function confirmed(would: ActReport, options: ActOptions): Promise<boolean> {
  if (options.dryRun) {
    reportUndone({ ...would, text: `${would.text}; nothing was done` }, options)
    return false
  }
  if (options.yes) return true
  if (!process.stdin.isTTY) throw new ExpectedFailure('there is no terminal to ask on: give --yes')
  if (await agreed(`${would.text}. Go on?`)) return true
  reportUndone({ ...would, text: 'nothing was done' }, options)
  return false
}

/** Prints what was done. */
export const reportDone = (did: ActReport, options: ActOptions): void =>
  report({ text: did.text, json: { ...did.json, done: true } }, options)

/** Prints why nothing was done. */
export const reportUndone = (why: ActReport, options: ActOptions): void =>
  report({ text: why.text, json: { ...why.json, done: false } }, options)

/** The same for an act that should have been done; the exit code is 1. */
export function reportRefused(why: ActReport, options: ActOptions): void {
  process.exitCode = 1
  reportUndone(why, options)
}

const report = ({ text, json }: ActReport, options: ActOptions): void =>
  print(options.json ? JSON.stringify(json, paiseAsText, 2) : text)
