import type { Fault } from '../../../domain/fault.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import type { State } from '../../../domain/payout/states.ts'
import { isOpen, payoutColumns } from '../../../ledger/sql/columns.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'

/**
 * What asking about a payout came to: the state in which the gateway's word, or its published end, left it. `never-sent`: the gateway has no
 * such order, and it waits here. `not-found`: the same of one that was sent.
 */
export type RecoveryFinding = State | 'never-sent' | 'not-found'

type ListedMerchant = { merchantId: string }
/** Of the fence that stands: see `Fence`. */
type Round = ListedMerchant & { round: number }

/** What an answer came to that still counts. */
const foundNow: Fragment = { fragment: 'case when r.round = m.recovery_round then r.found end' }
const absencesNow: Fragment = {
  fragment: '(case when r.round = m.recovery_round then r.absences else 0 end + 1)',
}
const listed: Fragment = {
  fragment: 'recovered_payouts r join merchants m on m.merchant_id = r.merchant_id',
}

/**
 * Puts the next payouts that have not ended on the list, after a payoutId; those on it stay. Whatever is open is due at
 * some time or in review, which is what the index `payouts_open` holds. `last`: the payoutId to go on after; null: that
 * were all.
 */
export const listOpenPayouts = sql<
  ListedMerchant & { after: string; limit: number },
  { last: string | null }
>`
  with page as materialized (
    select payout_id from payouts
    where merchant_id = ${'merchantId'} and ${isOpen} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  ), listed as (
    insert into recovered_payouts (merchant_id, payout_id) select ${'merchantId'}, payout_id from page
    on conflict do nothing
  )
  select max(payout_id) as last from page`

export const countOpenPayouts = sql<ListedMerchant, { count: number }>`
  select count(*)::int as count from payouts
  where merchant_id = ${'merchantId'} and ${isOpen}`

/** The next ones on the list, after a payoutId, that are still to be asked about. */
export const unasked = sql<ListedMerchant & { after: string; limit: number }, { payoutId: string }>`
  select r.payout_id from ${listed}
  where r.merchant_id = ${'merchantId'} and r.payout_id > ${'after'} and (r.found is null or r.round <> m.recovery_round)
  order by r.payout_id limit ${'limit'}`

export const progress = sql<ListedMerchant, { listed: number; asked: number }>`
  select count(*)::int as listed, count(${foundNow})::int as asked from ${listed}
  where r.merchant_id = ${'merchantId'}`

export const tally = sql<ListedMerchant, { found: RecoveryFinding | null; count: number }>`
  select ${foundNow} as found, count(*)::int as count from ${listed}
  where r.merchant_id = ${'merchantId'} group by 1 order by 1`

export const payoutById = sql<ListedMerchant & { payoutId: string }, Payout>`
  select ${payoutColumns} from payouts p where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`

export const keepFound = sql<Round & { payoutId: string; found: RecoveryFinding }>`
  update recovered_payouts set found = ${'found'}, round = ${'round'}
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/**
 * Counts a "not found"; so many of them are believed. No row: the list was made anew meanwhile. `sent`: an attempt is known that
 * the ledger lost, by what was published or by evidence of it.
 */
export const keepAbsence = sql<
  Round & { payoutId: string; confirmations: number; found: RecoveryFinding },
  { believed: boolean; sent: boolean }
>`
  update recovered_payouts r
  set round = ${'round'}, absences = ${absencesNow},
      found = case when ${absencesNow} >= ${'confirmations'} then ${'found'} end
  from merchants m
  where m.merchant_id = ${'merchantId'} and m.recovery_round = ${'round'}
    and r.merchant_id = m.merchant_id and r.payout_id = ${'payoutId'}
  returning r.found is not null as believed,
    r.sent or exists (
      select from anomalies a
      where a.merchant_id = r.merchant_id and a.payout_id = r.payout_id and a.kind = 'never-sent'
    ) as sent`

/** A row: the gateway had an order of it once, as its history, what was published or evidence of an attempt that was lost tells. */
export const wasAtGateway = sql<ListedMerchant & { payoutId: string }, { had: boolean }>`
  (select true as had from history
   where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}
     and (to_state = 'processing' or (to_state = 'unknown' and reason = 'duplicate')) limit 1)
  union all
  (select true from payouts
   where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and order_shown)
  union all
  (select true from anomalies
   where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and kind = 'never-sent' limit 1)`

/** A row: an order is known by which a "not found" of this account can be believed. */
export const orderAt = sql<ListedMerchant & { accountId: string }>`
  select from payouts
  where merchant_id = ${'merchantId'} and account_id = ${'accountId'} and agentpay_order_id is not null
    and state in ('processing', 'paid', 'failed')
  limit 1`

export const deleteList = sql<ListedMerchant>`delete from recovered_payouts where merchant_id = ${'merchantId'}`

/** Of commands that break rules. */
export const faultsOf = sql<ListedMerchant & { payoutIds: string[] }, { payoutId: string; faults: Fault[] }>`
  select c.payout_id, c.faults
  from unnest(${'payoutIds'}::text[]) as wanted (payout_id)
  cross join lateral (
    select payout_id, faults from payout_commands
    where payout_commands.merchant_id = ${'merchantId'} and payout_commands.payout_id = wanted.payout_id
    offset 0
  ) c
  where c.faults is not null`

/** Those that were to be cancelled or refused while the merchant was fenced, in the order of the primary key. */
export const lockCancelRequested = sql<ListedMerchant, Payout>`
  select ${payoutColumns} from payouts p
  where p.merchant_id = ${'merchantId'} and p.cancel_request is not null and p.due_at is not null
    and p.state in ('held', 'queued')
  order by p.payout_id
  for update`
