import { changeInWords, isSame } from '../../ledger/failover-watch.ts'
import { notedServer, type ServerIdentity, serverIdentity } from '../../ledger/sql/server-identity.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type Check, type Finding, good, warning, wrong } from '../examine.ts'
import { type StandbySettings, standbySettings } from '../sql/failover.ts'

/** Whether committed data is still there, and what a failover would cost. */
export const failoverChecks = (db: Database): Check[] => [
  {
    name: 'database history',
    needs: ['migrations'],
    run: async () => checkHistory((await db.run(notedServer, {}))[0], (await db.run(serverIdentity, {}))[0]),
  },
  {
    name: 'standbys',
    needs: ['database'],
    run: async () => checkStandbys((await db.run(standbySettings, {}))[0]),
  },
]

export function checkHistory(noted: ServerIdentity | undefined, now: ServerIdentity | undefined): Finding {
  if (!now) return wrong('the database does not return its history', 'check what listens at DATABASE_URL')
  if (!noted) return good('no payoutd has used this database yet')
  if (isSame(noted, now)) return good(`timeline ${now.timeline}, as when payoutd last looked`)
  return wrong(
    `${changeInWords(noted, now)}; no payoutd has used it since`,
    'if DATABASE_URL names the wrong database, correct it. Otherwise make sure that nothing uses the former server or database any ' +
      'more. payoutd serve will fence every merchant. Then run payoutd recover, which asks the gateway about open payouts, or payoutd ' +
      'recover --nothing-lost if a standby that took over has every commit of the former server',
  )
}

export function checkStandbys(settings: StandbySettings | undefined): Finding {
  if (!settings)
    return wrong('the database does not return its settings', 'check what listens at DATABASE_URL')
  const { names, synchronousCommit, isAwaited, connected } = settings
  const waits = names !== '' && synchronousCommit !== 'local' && synchronousCommit !== 'off'
  if (isAwaited || (waits && connected === 0)) {
    return wrong(
      `every commit waits for ${names}, ${connected === 0 ? 'and no standby is connected' : 'which does not answer'}: nothing is stored meanwhile`,
      'start the standby, or connect it again. If it is lost for long, take it out of synchronous_standby_names: then a failover can ' +
        'lose commits (docs/how-to/failover.md)',
    )
  }
  if (names === '') {
    return good(
      'commits wait for no standby: a failover can lose the last commits, and fences every merchant until payoutd ' +
        'recover has run (docs/how-to/failover.md)',
    )
  }
  if (synchronousCommit === 'on' || synchronousCommit === 'remote_apply') {
    return waitsForEach(names)
      ? good(`commits wait for ${names}: a failover to it loses no commit`)
      : good(
          `commits wait for some of ${names}: only the one that is furthest ahead has every commit, and a failover to ` +
            'another loses commits (docs/how-to/failover.md)',
        )
  }
  return warning(
    `synchronous_standby_names is ${names}, but synchronous_commit is ${synchronousCommit}: commits do not wait until the standby has them on disk`,
    'set synchronous_commit to on, or remote_apply, for the role that runs payoutd',
  )
}

/**
 * Whether a commit waits for each standby that may take over: true for `one`, `FIRST 1 (one)`, `ANY 2 (one, two)`, not for `one,
 * two`.
 */
function waitsForEach(names: string): boolean {
  const [, count = '1', list = names] = /^(?:(?:first|any) )? *(\d+) *\((.*)\)$/is.exec(names.trim()) ?? []
  const standbys = list.split(',').map((name) => name.trim())
  return !standbys.includes('*') && standbys.length <= Number(count)
}
