import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { allTaken, note } from './print.ts'

/** A reader may stop early (`payoutd doctor | head -1`): the command still does its work. */
export function loseUnreadOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
}

/** Runs a program with its arguments, the first two of which are Node's; an error ends it with code 1 and one message. */
export async function run(program: Command, argv: readonly string[] = process.argv): Promise<void> {
  try {
    await program.parseAsync(argv)
  } catch (error) {
    note(await explain(error, process.env))
    process.exitCode = 1
  }
}

const GOODBYE_MS = 1_000

/**
 * Ends the process soon after a reader has read the last output of its command, whatever is still running: KafkaJS keeps
 * connecting to a silent broker for minutes after every caller has given up.
 */
export async function leave(): Promise<void> {
  await allTaken()
  setTimeout(() => process.exit(), GOODBYE_MS).unref()
}

/** `npm run` gives every command these variables, while `npm run up` is up and after it. */
const STACK_SETTINGS = '.payoutd/stack.env'

/**
 * What to print for an error that ended a command: one message if a person can act on it, and for a bug the error itself, with
 * its stack.
 */
async function explain(error: unknown, env: NodeJS.ProcessEnv): Promise<unknown> {
  if (error instanceof ExpectedFailure) return error.message
  // Loading these takes longer than a command that needs no settings.
  const { ConfigError, readConfig } = await import('../config/config.ts')
  const { inWords } = await import('../platform/dependency-fault.ts')
  if (error instanceof ConfigError) {
    return error.namesNoServer && !existsSync(STACK_SETTINGS)
      ? `${error.message}\nstart everything on this machine with: npm run up`
      : error.message
  }
  try {
    const explained = inWords(error, readConfig(env))
    return explained instanceof ExpectedFailure ? explained.message : explained
  } catch (unreadable) {
    // Settings are missing or wrong: no server was contacted.
    if (unreadable instanceof ConfigError) return error
    throw unreadable
  }
}
