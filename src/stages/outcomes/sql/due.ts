import type { PayoutKey } from '../../../domain/identifiers.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import type { QuestionLimit } from '../../../ledger/due-batches.ts'
import { payoutColumns, timerAt } from '../../../ledger/sql/columns.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/**
 * Payouts that time alone changes now: at most `ofEach` of each merchant, the longest due first. Walks from one merchant to the
 * next along the index.
 */
export const dueTimers = sql<{ ofEach: number }, PayoutKey>`
  with recursive open as (
    (select merchant_id from payouts where due_at is not null order by merchant_id limit 1)
    union all
    select (
      select payouts.merchant_id from payouts
      where payouts.due_at is not null and payouts.merchant_id > open.merchant_id
      order by payouts.merchant_id limit 1
    ) from open where open.merchant_id is not null
  )
  select open.merchant_id, due.payout_id from open
  cross join lateral (
    select payout_id from payouts
    where payouts.merchant_id = open.merchant_id and due_at is not null and ${timerAt} <= now()
    order by ${timerAt}
    limit ${'ofEach'}
  ) due`

/**
 * Payouts to ask the gateway about now: of each given merchant at most its limit, the longest due first.
 */
export const dueQuestions = sql<{ limits: readonly QuestionLimit[] }, PayoutKey>`
  select asked.merchant_id, due.payout_id
  from ${{ rows: 'limits', columns: { merchantId: 'text', most: 'int' } }} asked
  cross join lateral (
    select payout_id from payouts
    where payouts.merchant_id = asked.merchant_id and due_at is not null and state in ('unknown', 'processing')
      and due_at <= now() and deadline > now()
    order by due_at
    limit asked.most
  ) due`

/** Locks those of these payouts of one merchant that are still due. Skips payouts that another transaction has locked. */
export const lockDue = sql<{ merchantId: string; payoutIds: string[] }, Payout>`
  select ${payoutColumns}
  from (select * from unnest(${'payoutIds'}::text[]) as named (payout_id) order by 1) wanted
  cross join lateral (
    select * from payouts
    where payouts.merchant_id = ${'merchantId'} and payouts.payout_id = wanted.payout_id
      and (due_at <= now() or ${timerAt} <= now())
    for update skip locked
  ) p`
