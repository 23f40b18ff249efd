import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { withSession } from '../../platform/postgres/postgres.ts'
import { takeMigrationTurn } from './migrate.ts'

/** The rights on tables that payoutd may not change at will. It reads and writes every other table. */
const NARROWER: Readonly<Record<string, string>> = {
  migrations: 'select',
  compatibility: 'select',
  operator_acts: 'select, insert',
  gateway_settings: 'select, insert',
  // An entry stays; only the count of its repeats goes up. keep_history drops old months.
  history: 'select, insert, update (times, last_at)',
}

/** Tables that the role that runs payoutd only reads, and those that it reads and adds to but does not change at will. */
export const ONLY_READ = namesOf((rights) => rights === 'select')
export const ONLY_ADDED_TO = namesOf((rights) => rights !== 'select')

function namesOf(fits: (rights: string) => boolean): string[] {
  return Object.entries(NARROWER).flatMap(([name, rights]) => (fits(rights) ? [name] : []))
}

/**
 * Gives a role of the database at `url` the rights that payoutd needs to run, and revokes every other one on its tables: the
 * role creates and drops no table, and only adds to what operators did. Repeat it after each migration. Throws an
 * ExpectedFailure for a superuser or a role that owns the tables.
 */
export async function grantTo(url: string, role: string): Promise<void> {
  await withSession(url, async (session) => {
    const { rows: found } = await session.query<{ owns: boolean }>(
      `select rolsuper or pg_has_role(oid, (select relowner from pg_class where oid = 'operator_acts'::regclass), 'usage')
         as owns from pg_roles where rolname = $1`,
      [role],
    )
    const [known] = found
    if (!known)
      throw new ExpectedFailure(`there is no role ${role} in the database: create it with login first`)
    if (known.owns) {
      throw new ExpectedFailure(
        `${role} owns the tables or is a superuser, so payoutd cannot limit its rights: name another role`,
      )
    }
    const { rows: tables } = await session.query<{ schema: string; name: string }>(
      `select current_schema() as schema, relname as name from pg_class
       where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition`,
    )
    const to = session.escapeIdentifier(role)
    const schema = session.escapeIdentifier(tables[0]?.schema ?? 'public')
    await takeMigrationTurn(session)
    await session.query(
      [
        // The revocation fails if a partition of the history is made or dropped meanwhile.
        `begin; select pg_advisory_xact_lock(hashtext('keep_history'))`,
        `grant usage on schema ${schema} to ${to}; revoke all on all tables in schema ${schema} from ${to}`,
        ...tables.map(
          ({ name }) =>
            `grant ${NARROWER[name] ?? 'select, insert, update, delete'} on ${session.escapeIdentifier(name)} to ${to}`,
        ),
        // From it the relay knows which positions can no longer appear.
        `grant select on sequence ${schema}.outbox_position_seq to ${to}`,
        `grant execute on function keep_history(integer) to ${to}; commit`,
      ].join('; '),
    )
  })
}
