import { existsSync } from 'node:fs'
import path from 'node:path'
import { Command } from 'commander'
import { note, print } from '../../src/cli/print.ts'
import { ExpectedFailure } from '../../src/platform/expected-failure.ts'
import { createLogger } from '../../src/platform/log.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { addressBlock } from './demo/addresses.ts'
import { type Installation, type OnStep, startInstallation } from './demo/installation.ts'
import { Interrupted, interruption, untilAborted } from './demo/interruption.ts'
import { stepTeller } from './demo/steps.ts'
import { layoutOf } from './servers/layout.ts'

const DIR = '.payoutd'

export const upCommand = new Command('up')
  .description(
    'run payoutd with everything it needs on this machine, until Ctrl-C; DATABASE_URL, KAFKA_BROKERS, ' +
      'SCHEMA_REGISTRY_URL and GATEWAY_BASE_URL (with GATEWAY_MCH_ID and GATEWAY_KEY) name servers of your own to use ' +
      'instead',
  )
  .option('--fresh', 'delete the databases, topics, schemas and gateway ledger of earlier runs first', false)
  .action(async ({ fresh }: { fresh: boolean }) => {
    try {
      await up(fresh, interruption())
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error
    }
  })

async function up(fresh: boolean, interrupted: AbortSignal): Promise<never> {
  const installation = await startInstallation({
    dir: DIR,
    fresh,
    ports: 'usual',
    given: process.env,
    log: createLogger({ name: 'up', level: 'error', destination: 2 }),
    onStep: fresh ? deletionTeller() : stepTeller(systemClock),
    signal: interrupted,
  })
  try {
    print(`\npayoutd is up, Ctrl-C stops it\n${addressBlock(installation)}\n`)
    print(`next, in another terminal: ${nextCommands(installation)}\n`)
    return await Promise.race([untilAborted(interrupted), unexpectedEnd(installation)])
  } finally {
    await installation.stop()
  }
}

/** The example payroll is for the sandbox: no hint leads anybody to send it to a given gateway. */
function nextCommands({ stack }: Installation): string {
  const ingest = 'npm run ingest -- examples/payroll-2026-11.csv --batch november --publish-valid-rows'
  const merchants = 'npm run payoutd -- merchants'
  return stack.gatewayMchId === undefined ? merchants : `${ingest}, then ${merchants}`
}

/** Reported at once: stopping the servers takes a while. */
async function unexpectedEnd({ payoutd }: Installation): Promise<never> {
  try {
    return await payoutd.unexpectedEnd
  } catch (error) {
    note(`${error instanceof Error ? error.message : String(error)}\n`)
    throw new ExpectedFailure('"npm run up" goes on where it was', { cause: error })
  }
}

/** Deletes nothing before the first step: the directory may belong to a stack that is up. */
function deletionTeller(): OnStep {
  const { data } = layoutOf(DIR)
  let left = existsSync(data)
  const tell = stepTeller(systemClock)
  return (step, state) => {
    if (left) note(`deleted ${path.relative('', data)}: databases, topics, schemas, the gateway's ledger`)
    left = false
    tell(step, state)
  }
}
