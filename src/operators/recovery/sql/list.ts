import type { Fault } from '../../../domain/fault.ts'
import type { Instant } from '../../../domain/instant.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import type { State } from '../../../domain/payout/states.ts'
import { isOpen, payoutColumns } from '../../../ledger/sql/columns.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'

/**
 * The finding about a payout: the state in which the gateway's report, or its published end, left it. `never-sent`: the gateway
 * has no such order, and the payout waits here. `not-found`: the same for a payout that was sent.
 */
export type RecoveryFinding = State | 'never-sent' | 'not-found'

type ListedMerchant = { merchantId: string }
/** The round of the existing fence: see `Fence`. */
type Round = ListedMerchant & { round: number }

/** The finding of an answer that still counts. */
const foundNow: Fragment = { fragment: 'case when r.round = m.recovery_round then r.found end' }
const listed: Fragment = {
  fragment: 'recovered_payouts r join merchants m on m.merchant_id = r.merchant_id',
}

/**
 * Puts the next payouts that have not ended on the list, after a payoutId; entries on it stay. Every open payout is due at some
 * time or in review, which is what the index `payouts_open` holds. `last`: the payoutId to continue after; null: that was the
 * last page.
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

/** The next payouts on the list, after a payoutId, still to be asked about; none once another round has begun. */
export const unasked = sql<Round & { after: string; limit: number }, { payoutId: string }>`
  select r.payout_id from ${listed}
  where r.merchant_id = ${'merchantId'} and m.recovery_round = ${'round'} and r.payout_id > ${'after'}
    and (r.found is null or r.round <> m.recovery_round)
  order by r.payout_id limit ${'limit'}`

export const progress = sql<ListedMerchant, { listed: number; asked: number }>`
  select count(*)::int as listed, count(${foundNow})::int as asked from ${listed}
  where r.merchant_id = ${'merchantId'}`

export const tally = sql<ListedMerchant, { found: RecoveryFinding | null; count: number }>`
  select ${foundNow} as found, count(*)::int as count from ${listed}
  where r.merchant_id = ${'merchantId'} group by 1 order by 1`

/** A payout to ask about, and when payoutd does, by the database's clock. */
export const payoutToAsk = sql<ListedMerchant & { payoutId: string }, Payout & { now: Instant }>`
  select ${payoutColumns}, now() as now from payouts p where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`

export const keepFound = sql<Round & { payoutId: string; found: RecoveryFinding }>`
  update recovered_payouts set found = ${'found'}, round = ${'round'}
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/**
 * Counts a "not found"; after so many, in this round and `since` then, it is believed. No row: the list was made anew meanwhile.
 * `sent`: what was published, or evidence of it, shows an attempt that the ledger lost.
 */
export const keepAbsence = sql<
  Round & { payoutId: string; confirmations: number; found: RecoveryFinding; since: Instant },
  { believed: boolean; sent: boolean }
>`
  with earlier as (
    select case when r.round = m.recovery_round
                  and r.not_found_since >= to_timestamp(${'since'}::float8 / 1000)
                then r.not_found_count else 0 end as counted
    from ${listed}
    where r.merchant_id = ${'merchantId'} and r.payout_id = ${'payoutId'} and m.recovery_round = ${'round'}
    for update of r
  )
  update recovered_payouts r
  set round = ${'round'}, not_found_count = e.counted + 1,
      not_found_since = case when e.counted = 0 then now() else r.not_found_since end,
      found = case when e.counted + 1 >= ${'confirmations'} then ${'found'} end
  from earlier e
  where r.merchant_id = ${'merchantId'} and r.payout_id = ${'payoutId'}
  returning r.found is not null as believed,
    r.sent or exists (
      select from anomalies a
      where a.merchant_id = r.merchant_id and a.payout_id = r.payout_id and a.kind = 'never-sent'
    ) or exists (
      select from payouts p join anomalies a on a.merchant_id = p.merchant_id and a.order_no = p.order_no
      where p.merchant_id = r.merchant_id and p.payout_id = r.payout_id and a.payout_id is null
        and a.kind in ('never-sent', 'unknown-order')
    ) as sent`

/** A row: the gateway had its order once, according to its history, to what was published, or to evidence of a lost attempt. */
export const wasAtGateway = sql<ListedMerchant & { payoutId: string }, { had: boolean }>`
  (select true as had from history
   where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}
     and (to_state = 'processing' or (to_state = 'unknown' and reason = 'duplicate')) limit 1)
  union all
  (select true from payouts
   where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and order_shown)
  union all
  (select true from anomalies
   where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and kind = 'never-sent' limit 1)
  union all
  (select true from payouts p join anomalies a on a.merchant_id = p.merchant_id and a.order_no = p.order_no
   where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'} and a.payout_id is null
     and a.kind in ('never-sent', 'unknown-order') limit 1)`

/** A row: payoutd knows an order of this account, so that a "not found" of it can be believed. */
export const orderAt = sql<ListedMerchant & { accountId: string }>`
  select from payouts
  where merchant_id = ${'merchantId'} and account_id = ${'accountId'} and agentpay_order_id is not null
    and state in ('processing', 'paid', 'failed')
  limit 1`

export const deleteList = sql<ListedMerchant>`delete from recovered_payouts where merchant_id = ${'merchantId'}`

/** The faults of commands that break rules. */
export const faultsOf = sql<ListedMerchant & { payoutIds: string[] }, { payoutId: string; faults: Fault[] }>`
  select c.payout_id, c.faults
  from unnest(${'payoutIds'}::text[]) as wanted (payout_id)
  cross join lateral (
    select payout_id, faults from payout_commands
    where payout_commands.merchant_id = ${'merchantId'} and payout_commands.payout_id = wanted.payout_id
    offset 0
  ) c
  where c.faults is not null`

/** Payouts that were to be cancelled or rejected while the merchant was fenced, in the order of the primary key. */
export const lockCancelRequested = sql<ListedMerchant, Payout>`
  select ${payoutColumns} from payouts p
  where p.merchant_id = ${'merchantId'} and p.cancel_request is not null and p.due_at is not null
    and p.state in ('held', 'queued')
  order by p.payout_id
  for update`
