import { isOpen, payoutColumns } from '../../ledger/sql/columns.ts'
import type { EvidenceSource } from '../../payout/evidence.ts'
import type { Payout } from '../../payout/payout.ts'
import type { State } from '../../payout/states.ts'
import { sql } from '../../platform/postgres.ts'

/**
 * What asking about a payout came to: the state in which the gateway's word, or its published end, left it. `never-sent`: the gateway has no
 * such order, and it waits here. `not-found`: the same of one that was sent.
 */
export type Found = State | 'never-sent' | 'not-found'

type Whose = { merchantId: string }

/**
 * Puts the next payouts that have not ended on the list, after a payoutId; those on it stay. Whatever is open is due at
 * some time or in review, which is what the index `payouts_open` holds. `last`: the payoutId to go on after; null: that
 * were all.
 */
export const listOpenPayouts = sql<Whose & { after: string; limit: number }, { last: string | null }>`
  with page as materialized (
    select payout_id from payouts
    where merchant_id = ${'merchantId'} and ${isOpen} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  ), listed as (
    insert into recovered_payouts (merchant_id, payout_id) select ${'merchantId'}, payout_id from page
    on conflict do nothing
  )
  select max(payout_id) as last from page`

export const countOpenPayouts = sql<Whose, { count: number }>`
  select count(*)::int as count from payouts
  where merchant_id = ${'merchantId'} and ${isOpen}`

/** The next ones on the list, after a payoutId, that are still to be asked about. */
export const unasked = sql<Whose & { after: string; limit: number }, { payoutId: string }>`
  select payout_id from recovered_payouts
  where merchant_id = ${'merchantId'} and payout_id > ${'after'} and found is null
  order by payout_id limit ${'limit'}`

export const progress = sql<Whose, { listed: number; asked: number }>`
  select count(*)::int as listed, count(found)::int as asked from recovered_payouts
  where merchant_id = ${'merchantId'}`

export const tally = sql<Whose, { found: Found | null; count: number }>`
  select found, count(*)::int as count from recovered_payouts
  where merchant_id = ${'merchantId'} group by found order by found`

export const payoutById = sql<Whose & { payoutId: string }, Payout>`
  select ${payoutColumns} from payouts p where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`

export const keepFound = sql<Whose & { payoutId: string; found: Found }, { untold: EvidenceSource | null }>`
  update recovered_payouts set found = ${'found'}
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}
  returning untold`

/** Counts a "not found"; so many of them are believed. */
export const keepAbsence = sql<
  Whose & { payoutId: string; confirmations: number; found: Found },
  { believed: boolean; sent: boolean; untold: EvidenceSource | null }
>`
  update recovered_payouts
  set absences = absences + 1, found = case when absences + 1 >= ${'confirmations'} then ${'found'} end
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}
  returning found is not null as believed, sent, untold`

export const forgetList = sql<Whose>`delete from recovered_payouts where merchant_id = ${'merchantId'}`

/** Those that were to be cancelled while the merchant was fenced, in the order of the primary key. */
export const lockCancelRequested = sql<Whose, Payout>`
  select ${payoutColumns} from payouts p
  where p.merchant_id = ${'merchantId'} and p.reason = 'cancel-requested' and p.state = 'held'
  order by p.payout_id
  for update`
