import { sql } from '../../platform/postgres/postgres.ts'

/**
 * Distinguishes one server's history from every other, and the ledger's database from its copies in the same server: a standby and
 * a restored backup of the server keep its OID, a copy and a loaded dump have another. An ordinary role may read all of it.
 */
export type ServerIdentity = { systemIdentifier: string; timeline: bigint; databaseOid: bigint }

/** Fails on a standby, which has no insert position in the WAL. */
export const serverIdentity = sql<object, ServerIdentity>`
  select (select system_identifier::text from pg_control_system()) as system_identifier,
    ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint as timeline,
    (select oid::bigint from pg_database where datname = current_database()) as database_oid`

/** Whether there is a ledger yet. If the database was not migrated, `payoutd serve` refuses it with a message of its own. */
export const hasLedger = sql<object, { present: boolean }>`
  select to_regclass('ledger_server') is not null as present`

export const notedServer = sql<object, ServerIdentity>`
  select system_identifier, timeline, database_oid from ledger_server`

/** For a new ledger. */
export const noteServer = sql<ServerIdentity>`
  insert into ledger_server (system_identifier, timeline, database_oid)
  values (${'systemIdentifier'}, ${'timeline'}, ${'databaseOid'})
  on conflict do nothing`

/** `oneStep`: one step of the server's history raises the fence, see `isOneStep`. */
type ServerFencing = ServerIdentity & { merchantIds: string[]; by: string; reason: string; oneStep: boolean }

/**
 * Fences every merchant of the ledger or the settings. Waits for claims under way. A standing fence keeps its time and author
 * and collects the reasons, up to 2,000 characters; with another reason it is no longer about one step. Earlier answers to a
 * recovery, under this fence or from a lost ledger, no longer count.
 */
const everybody = sql<Omit<ServerFencing, keyof ServerIdentity>>`
  insert into merchants as m (merchant_id, settings_hash, recovering_since, recovering_by, recovering_reason,
                              recovering_one_step)
  select merchant_id, '', now(), ${'by'}, ${'reason'}, ${'oneStep'}::bool
  from (select merchant_id from merchants union select unnest(${'merchantIds'}::text[])) known (merchant_id)
  order by merchant_id
  on conflict (merchant_id) do update
  set recovering_since = coalesce(m.recovering_since, excluded.recovering_since),
      recovering_by = coalesce(m.recovering_by, excluded.recovering_by),
      recovering_reason = case
        when m.recovering_reason is null then excluded.recovering_reason
        when strpos(m.recovering_reason, excluded.recovering_reason) > 0 then m.recovering_reason
        else left(m.recovering_reason || '; ' || excluded.recovering_reason, 2000)
      end,
      recovering_one_step = case
        when m.recovering_reason is null then excluded.recovering_one_step
        else m.recovering_one_step and m.recovering_reason = excluded.recovering_reason
      end,
      recovery_round = m.recovery_round + 1,
      recovery_began = null`

/** Fences every merchant and notes the server in one statement. */
export const fenceAll = sql<ServerFencing, { merchantId: string }>`
  with noted as (
    insert into ledger_server (system_identifier, timeline, database_oid)
    values (${'systemIdentifier'}, ${'timeline'}, ${'databaseOid'})
    on conflict (only_one) do update
    set system_identifier = excluded.system_identifier, timeline = excluded.timeline,
        database_oid = excluded.database_oid, since = now()
  )
  ${everybody}
  returning merchant_id`

/** For a ledger that was set back on its own server: fences once per reason, and returns the merchants fenced. */
export const fenceEvery = sql<Omit<ServerFencing, keyof ServerIdentity>, { merchantId: string }>`
  ${everybody}
  where strpos(coalesce(m.recovering_reason, ''), excluded.recovering_reason) = 0
  returning merchant_id`

/** Fences the merchants that have no row in the ledger. */
export const fenceUnknown = sql<Omit<ServerFencing, keyof ServerIdentity>>`
  insert into merchants (merchant_id, settings_hash, recovering_since, recovering_by, recovering_reason,
                         recovering_one_step)
  select merchant_id, '', now(), ${'by'}, ${'reason'}, ${'oneStep'}::bool
  from unnest(${'merchantIds'}::text[]) as known (merchant_id)
  order by merchant_id
  on conflict (merchant_id) do nothing`
