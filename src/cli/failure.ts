import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { type Config, ConfigError, readConfig } from '../config/config.ts'
import { inWords } from '../platform/dependency-fault.ts'
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
    note(explain(error, process.env))
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
function explain(error: unknown, env: NodeJS.ProcessEnv): unknown {
  if (error instanceof ConfigError) {
    return error.namesNoServer && !existsSync(STACK_SETTINGS)
      ? `${error.message}\nstart everything on this machine with: npm run up`
      : error.message
  }
  if (error instanceof ExpectedFailure) return error.message
  const config = configIn(env)
  const told = config ? inWords(error, config) : error
  return told instanceof ExpectedFailure ? told.message : told
}

/** Null if settings are missing or wrong: then no server was contacted. */
function configIn(env: NodeJS.ProcessEnv): Config | null {
  try {
    return readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return null
    throw error
  }
}
