import { ONLY_ADDED_TO, ONLY_READ } from '../../ledger/tables/grants.ts'
import { schemaFit } from '../../ledger/tables/schema.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { type ClockReading, checkClock } from '../clocks.ts'
import { type Check, type Finding, good, warning, wrong } from '../examine.ts'
import {
  canRewriteActs,
  type MissingRight,
  missingRights,
  type ServerState,
  serverClock,
  serverState,
} from '../sql/server.ts'

/** payoutd is tried with no older server version. */
const OLDEST = 18

export function databaseChecks(db: Database, address: string, clock: Clock): Check[] {
  return [
    { name: 'database', run: async () => checkServer((await db.run(serverState, {}))[0], address) },
    { name: 'database clock', needs: ['database'], run: () => databaseClock(db, clock) },
    { name: 'migrations', needs: ['database'], run: () => migrations(db) },
    {
      name: 'database rights',
      needs: ['migrations'],
      run: async () => {
        const missing = await db.run(missingRights, { onlyRead: ONLY_READ, onlyAddedTo: ONLY_ADDED_TO })
        return checkRights(missing, (await db.run(canRewriteActs, {}))[0]?.can ?? false)
      },
    },
  ]
}

/** If a crash can undo a commit, payoutd can send a payout a second time. */
export function checkServer(server: ServerState | undefined, address: string): Finding {
  if (!server)
    return wrong(`the database ${address} does not return its settings`, 'check what listens there')
  const { version, versionText, standby, readOnly, encoding, fsync } = server
  if (version < OLDEST * 10_000) {
    return wrong(
      `PostgreSQL ${versionText} at ${address} is too old`,
      `update it to PostgreSQL ${OLDEST} or later`,
    )
  }
  if (standby) {
    return wrong(`${address} is a standby, which is read-only`, 'set DATABASE_URL to the primary')
  }
  if (readOnly) {
    return wrong(
      `${address} refuses writes (default_transaction_read_only is on)`,
      'find out who set that, on the server, the database or the role, and turn it off',
    )
  }
  if (fsync !== 'on') {
    return wrong(
      `${address} can lose commits in a crash (fsync ${fsync})`,
      'set it to on: after a lost commit payoutd can pay somebody twice',
    )
  }
  if (encoding !== 'UTF8') {
    return wrong(
      `${address} has encoding ${encoding}`,
      'create the database with encoding UTF8: names and messages can contain any letter',
    )
  }
  return good(`PostgreSQL ${versionText} at ${address}`)
}

/** The quickest of some readings: network delay blurs them. */
async function databaseClock(db: Database, clock: Clock): Promise<Finding> {
  const readings: ClockReading[] = []
  for (let i = 0; i < 3; i++) {
    const before = clock.now()
    const [row] = await db.run(serverClock, {})
    if (row) readings.push({ before, after: clock.now(), shown: row.shown, resolutionMs: 1 })
  }
  const quickest = readings.reduce((best, each) =>
    each.after - each.before < best.after - best.before ? each : best,
  )
  return checkClock("the database's clock", quickest)
}

async function migrations(db: Database): Promise<Finding> {
  const { kind, what, todo } = await schemaFit(db)
  switch (kind) {
    case 'fits':
      return good(what)
    case 'newer':
      return warning(what, todo)
    case 'differs':
      return wrong(what, todo)
  }
}

export function checkRights(missing: readonly MissingRight[], canRewriteActs: boolean): Finding {
  if (missing.length === 0) {
    return good(
      canRewriteActs
        ? 'payoutd can read and write every table, and can also rewrite the record of what people did: to prevent that, run it as a role that payoutd migrate --grant-to set up'
        : 'payoutd can read and write every table, and can only add to the record of what people did',
    )
  }
  const lacks = [...Map.groupBy(missing, ({ on }) => on)].map(
    ([on, rights]) => `${rights.map(({ privilege }) => privilege).join(', ')} on ${on}`,
  )
  return wrong(
    `payoutd's database user lacks ${lacks.join('; ')}`,
    'run payoutd migrate --grant-to as the owner of the tables, which grants them',
  )
}
