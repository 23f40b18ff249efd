import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { type Config, ConfigError, readConfig } from '../config/config.ts'
import { inWords } from '../platform/dependency-fault.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { allTaken, note } from './print.ts'

/** Nobody need read to the end what a command says (`payoutd doctor | head -1`): it does what it was asked all the same. */
export function loseUnreadOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
}

/** Runs a program with its arguments, the first two of which Node gives; an error ends it with code 1 and one message. */
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
 * Ends the process soon after the last word of its command was read, whatever still goes on: KafkaJS goes on connecting to a
 * broker that is silent for minutes after everybody has given it up.
 */
export async function leave(): Promise<void> {
  await allTaken()
  setTimeout(() => process.exit(), GOODBYE_MS).unref()
}

/** What `npm run` gives every command as its environment, while `npm run up` is up and after it. */
const STACK_SETTINGS = '.payoutd/stack.env'

/**
 * What to print for an error that ended a command: one message for whatever a person can act on, and the
 * error itself, with its stack, for a bug.
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

/** Null where settings are missing or wrong: then no server was asked for anything. */
function configIn(env: NodeJS.ProcessEnv): Config | null {
  try {
    return readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return null
    throw error
  }
}
