import { Command, InvalidArgumentError, Option } from 'commander'
import { readConfig } from '../config/config.ts'
import { ROLES, type Role, startPayoutd } from '../main.ts'
import { createLogger } from '../platform/log.ts'

/** What is in hand when a stop is asked for is finished within this time, or left to its lease. */
const STOP_WITHIN_MS = 25_000

export const serveCommand = new Command('serve')
  .description('run payoutd until it is told to stop (SIGINT, SIGTERM)')
  .addOption(
    new Option('--roles <list>', `what this process does, of ${ROLES.join(', ')}`)
      .argParser(roles)
      .default(new Set(ROLES), 'all'),
  )
  .action(async (options: { roles: ReadonlySet<Role> }) => {
    const config = readConfig(process.env)
    const log = createLogger({ name: 'payoutd', level: config.logLevel })
    const payoutd = await startPayoutd(config, options.roles, log)
    await stopRequested()
    log.info({}, 'stopping: finishing what is in hand')
    const late = setTimeout(() => {
      payoutd.tellAbandoned()
      log.error(
        { afterMs: STOP_WITHIN_MS },
        'not everything in hand could be finished: leases and queries will resolve it',
      )
      process.exit(1)
    }, STOP_WITHIN_MS)
    await payoutd.stop()
    clearTimeout(late)
    log.info({}, 'stopped')
  })

function roles(list: string): ReadonlySet<Role> {
  const names = list.split(',').map((name) => name.trim())
  const wrong = names.filter((name) => !ROLES.some((role) => role === name))
  if (wrong.length > 0)
    throw new InvalidArgumentError(`"${wrong.join(', ')}": the roles are ${ROLES.join(', ')}`)
  return new Set(names as Role[])
}

/** Resolves with the first SIGINT or SIGTERM; a second one ends the process at once. */
function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
}
