import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { type Config, ConfigError, readConfig } from '../config/config.ts'
import { inWords } from '../operations/dependency-trouble.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'

/** Runs a program; an error ends it with code 1 and one message. */
export async function run(program: Command): Promise<void> {
  try {
    await program.parseAsync()
  } catch (error) {
    console.error(explain(error, process.env))
    process.exitCode = 1
  }
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
