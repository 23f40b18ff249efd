import { sql } from '../../platform/postgres.ts'
import type { Payin } from '../payin.ts'
import { payinColumns } from './columns.ts'

/** Payins whose creation's lease has ended, the longest due first. Those that another process holds are left to it. */
export const lockEndedLeases = sql<{ limit: number }, Payin>`
  select ${payinColumns}
  from payins p
  where p.due_at <= now() and p.state = 'creating'
  order by p.due_at
  limit ${'limit'}
  for update of p skip locked`

/**
 * Payins that the gateway is to be asked about now: of each merchant named at most as many as its limit, the longest
 * due first. Those that another process holds are left to it.
 */
export const lockToAsk = sql<{ merchantIds: string[]; limits: number[] }, Payin>`
  select ${payinColumns}
  from unnest(${'merchantIds'}::text[], ${'limits'}::int[]) as asked (merchant_id, most)
  cross join lateral (
    select * from payins
    where payins.merchant_id = asked.merchant_id and state <> 'creating' and due_at <= now()
    order by due_at
    limit asked.most
    for update skip locked
  ) p`

/**
 * Due payins of merchants other than those named, so many of each at most: nobody can be asked about them here. The
 * merchants are found by walking from one to the next along the index.
 */
export const lockDueOfOthers = sql<{ merchantIds: string[]; ofEach: number }, Payin>`
  with recursive due as (
    (select merchant_id from payins where due_at is not null and state <> 'creating' order by merchant_id limit 1)
    union all
    select (
      select payins.merchant_id from payins
      where payins.due_at is not null and state <> 'creating' and payins.merchant_id > due.merchant_id
      order by payins.merchant_id limit 1
    ) from due where due.merchant_id is not null
  )
  select ${payinColumns}
  from due
  cross join lateral (
    select * from payins
    where payins.merchant_id = due.merchant_id and state <> 'creating' and due_at <= now()
    order by due_at
    limit ${'ofEach'}
    for update skip locked
  ) p
  where due.merchant_id <> all(${'merchantIds'}::text[])`
