import type { Instant } from '../../domain/instant.ts'
import type { Scrubbed } from '../../domain/mask.ts'
import { sql } from '../../platform/postgres/postgres.ts'

type ActRow = {
  by: string
  reason: Scrubbed
  command: string
  osUser: string
  host: string
  merchantId: string | null
  subjects: string[]
  /** JSON */
  before: string | null
  after: string | null
}

export const insertAct = sql<ActRow>`
  insert into operator_acts (acted_by, reason, command, os_user, host, merchant_id, subjects, before, after)
  values (${'by'}, ${'reason'}, ${'command'}, ${'osUser'}, ${'host'}, ${'merchantId'}, ${'subjects'}::text[],
          ${'before'}::jsonb, ${'after'}::jsonb)`

/** One act as stored. */
export type StoredAct = {
  actId: bigint
  at: Instant
  by: string
  reason: string
  command: string
  osUser: string
  host: string
  databaseRole: string
  clientAddress: string | null
  merchantId: string | null
  subjects: string[]
  before: object | null
  after: object | null
}

/** Acts, the latest first. With a merchant: those about it and those about no merchant; null: all. */
export const latestActs = sql<{ merchantId: string | null; since: Instant | null; limit: number }, StoredAct>`
  select act_id, at, acted_by as by, reason, command, os_user, host, database_role,
         host(client_address) as client_address, merchant_id, subjects, before, after
  from operator_acts
  where (${'merchantId'}::text is null or merchant_id is null or merchant_id = ${'merchantId'})
    and at >= coalesce(to_timestamp(${'since'}::float8 / 1000), '-infinity')
  order by act_id desc limit ${'limit'}`
