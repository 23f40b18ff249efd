import { once } from 'node:events'
import { Command, InvalidArgumentError, Option } from 'commander'
import { SAFEGUARDS } from '../../app/safeguards.ts'
import { type Payoutd, ROLES, type Role, startPayoutd } from '../../app/start.ts'
import { readConfig } from '../../config/config.ts'
import { createLogger } from '../../platform/log.ts'

/** sysexits.h calls it EX_SOFTWARE. payoutd uses this exit code for nothing else. */
const STANDSTILL_EXIT = 70

export const serveCommand = new Command('serve')
  .addOption(
    new Option('--roles <list>', `what this process does; choose from ${ROLES.join(', ')}`)
      .argParser(roles)
      .default(new Set(ROLES), 'all'),
  )
  .action(async (options: { roles: ReadonlySet<Role> }) => {
    const config = readConfig(process.env)
    const log = createLogger({ name: 'payoutd', level: config.logLevel })
    const stopping = stopRequested()
    let payoutd: Payoutd
    try {
      payoutd = await startPayoutd(config, options.roles, log, SAFEGUARDS, stopping)
    } catch (error) {
      if (error !== stopping.reason) throw error
      log.info({}, 'stopped before it had started')
      return
    }
    const standstill = await Promise.race([aborted(stopping), payoutd.standstill])
    if (standstill) {
      payoutd.logAbandoned()
      log.fatal(
        standstill,
        'a loop has stopped moving, so this process exits. Its supervisor should start it again; leases protect its unfinished work',
      )
      process.exit(STANDSTILL_EXIT)
    }
    log.info({}, 'stopping: finishing work in progress')
    await payoutd.stop()
    if (payoutd.unfinished.length > 0) {
      payoutd.logAbandoned()
      log.error(
        { parts: payoutd.unfinished },
        'stopped with unfinished work: leases and queries will resolve it',
      )
      process.exit(1)
    }
    log.info({}, 'stopped')
  })

function roles(list: string): ReadonlySet<Role> {
  const names = list.split(',').map((name) => name.trim())
  const wrong = names.filter((name) => !ROLES.some((role) => role === name))
  if (wrong.length > 0)
    throw new InvalidArgumentError(`"${wrong.join(', ')}": the roles are ${ROLES.join(', ')}`)
  return new Set(names as Role[])
}

/** Aborted by the first SIGINT or SIGTERM; a second one ends the process at once. */
function stopRequested(): AbortSignal {
  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => abort.abort())
  return abort.signal
}

async function aborted(signal: AbortSignal): Promise<undefined> {
  if (!signal.aborted) await once(signal, 'abort')
}
