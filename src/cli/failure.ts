import type { Command } from 'commander'
import { ConfigError, readConfig } from '../config/config.ts'
import { type Addresses, addressesOf, inOneLine, troubleOf } from '../operations/dependency-trouble.ts'
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

/**
 * What to print for an error that ended a command: one message for whatever a person can act on, and the
 * error itself, with its stack, for a bug.
 */
function explain(error: unknown, env: NodeJS.ProcessEnv): unknown {
  if (error instanceof ConfigError || error instanceof ExpectedFailure) return error.message
  const addresses = addressesIn(env)
  const trouble = addresses && troubleOf(error, addresses)
  return trouble ? inOneLine(trouble) : error
}

/** Null where the configuration is not complete: then no dependency was asked for anything. */
function addressesIn(env: NodeJS.ProcessEnv): Addresses | null {
  try {
    const { databaseUrl, kafka, registry } = readConfig(env)
    return addressesOf({ databaseUrl, brokers: kafka.brokers, registryUrl: registry.url })
  } catch (error) {
    if (error instanceof ConfigError) return null
    throw error
  }
}
