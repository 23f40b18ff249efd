import type { Payin } from '../../domain/payin/payin.ts'
import type { QuestionLimit } from '../../ledger/due-batches.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import type { PayinKey } from '../store.ts'
import { payinColumns } from './columns.ts'

/**
 * Payins whose creation lease has ended: for each merchant the longest due first, up to a limit. It finds the merchants by
 * walking from one to the next along the index.
 */
export const endedLeases = sql<{ ofEach: number }, PayinKey>`
  with recursive creating as (
    (select merchant_id from payins where due_at is not null and state = 'creating' order by merchant_id limit 1)
    union all
    select (
      select payins.merchant_id from payins
      where payins.due_at is not null and state = 'creating' and payins.merchant_id > creating.merchant_id
      order by payins.merchant_id limit 1
    ) from creating where creating.merchant_id is not null
  )
  select creating.merchant_id, due.payin_id
  from creating
  cross join lateral (
    select payin_id from payins
    where payins.merchant_id = creating.merchant_id and state = 'creating' and due_at <= now()
    order by due_at
    limit ${'ofEach'}
  ) due`

/** Payins that payoutd must ask the gateway about now: for each listed merchant, up to its limit, the longest due first. */
export const dueQuestions = sql<{ limits: readonly QuestionLimit[] }, PayinKey>`
  select asked.merchant_id, due.payin_id
  from ${{ rows: 'limits', columns: { merchantId: 'text', most: 'int' } }} asked
  cross join lateral (
    select payin_id from payins
    where payins.merchant_id = asked.merchant_id and state <> 'creating' and due_at <= now()
    order by due_at
    limit asked.most
  ) due`

/**
 * Payins of unlisted merchants that no process seems to have, because the time of these payins was over so long ago: for each
 * merchant and state up to a limit of the oldest. It finds the merchants by walking from one to the next along the index.
 */
export const overdueOfOthers = sql<{ merchantIds: string[]; ofEach: number; overdueMs: number }, PayinKey>`
  with recursive open as (
    (select merchant_id from payins where state in ('creating', 'unknown', 'open', 'review') order by merchant_id limit 1)
    union all
    select (
      select payins.merchant_id from payins
      where state in ('creating', 'unknown', 'open', 'review') and payins.merchant_id > open.merchant_id
      order by payins.merchant_id limit 1
    ) from open where open.merchant_id is not null
  )
  select open.merchant_id, oldest.payin_id
  from open
  cross join unnest('{unknown,open}'::text[]) as waiting (state)
  cross join lateral (
    select payin_id, expires_at from payins
    where payins.merchant_id = open.merchant_id and payins.state = waiting.state
      and payins.state in ('creating', 'unknown', 'open', 'review')
    order by created_at
    limit ${'ofEach'}
  ) oldest
  where open.merchant_id <> all(${'merchantIds'}::text[])
    and oldest.expires_at <= now() - ${'overdueMs'} * interval '1 millisecond'`

/** Those of the given payins of one merchant that are still due. It skips the ones that another process has locked. */
export const lockDue = sql<{ merchantId: string; payinIds: string[] }, Payin>`
  select ${payinColumns}
  from (select * from unnest(${'payinIds'}::text[]) as named (payin_id) order by 1) wanted
  cross join lateral (
    select * from payins
    where payins.merchant_id = ${'merchantId'} and payins.payin_id = wanted.payin_id and due_at <= now()
    for update skip locked
  ) p`
