import type { Instant } from '../../../domain/instant.ts'
import type { State } from '../../../domain/payout/states.ts'
import { isAlive, mostCompared, repeated, searches } from '../../../ledger/sql/equal-payments.ts'
import { saidOtherwise } from '../../../ledger/sql/said-otherwise.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'
import { cameBack } from './reversal.ts'

const mayBePaid: Fragment = { fragment: `${saidOtherwise} is not null` }

type OfPayouts = { merchantId: string; payoutIds: string[] }

/** From when on each payout was to be paid when it was requested, and when intake took it. */
export const requestedTimes = sql<OfPayouts, { payoutId: string; requestedFor: Instant; paysAt: Instant }>`
  select t.*
  from unnest(${'payoutIds'}::text[]) as wanted (payout_id)
  cross join lateral (
    select payout_id, min(pays_at) as requested_for, max(pays_at) as pays_at from payments
    where payments.merchant_id = ${'merchantId'} and payments.payout_id = wanted.payout_id
    group by payout_id
  ) t`

/** A payout, and the time in which another payment of the same counts: all pay periods in which it was or is to be paid. */
type Wanted = { payoutId: string; periodFrom: Instant; periodTo: Instant }

export type FoundPayment = {
  otherPayoutId: string
  otherBatchId: string | null
  state: State
  reason: string | null
  /** It ended unpaid, and the gateway has reported something else. */
  mayBePaid: boolean
  /** It was paid, and a person has confirmed that the money came back. */
  cameBack: boolean
  /** It has the same beneficiaryId, and other bank details. */
  toOtherDetails: boolean
}

/** `thereMayBeMore`: some search found so many payments that it did not look at all of them, whatever came of those. */
type FoundBeside = { payoutId: string; thereMayBeMore: boolean } & (FoundPayment | { otherPayoutId: null })

/**
 * Other payouts of the same amount to the same beneficiary that are paid or may still be, by the rule by which intake holds;
 * those that were paid or sent come first. The same beneficiary is whoever has the same bank details or the same id: an account may
 * have been corrected. Two rows of one file with one id are a salary split over two accounts. Searches by key alone, and looks at
 * MOST_COMPARED payments in each search. If there may be more, there is a row even if all those payments are out of the way. An id
 * has many payments in the course of time: of those before the pay periods in question the last are enough, as for intake.
 */
export const otherPaymentsOf = sql<{ merchantId: string; wanted: readonly Wanted[] }, FoundBeside>`
  with asked as materialized (
    select own.*, named.beneficiary_id_hash, c.file, c.row_number,
      to_timestamp(wanted.period_from / 1000) as period_from, to_timestamp(wanted.period_to / 1000) as period_to,
      null::timestamptz as asked_from, null::timestamptz as asked_to,
      case when to_timestamp(wanted.period_from / 1000) < own.open_from then '-infinity'
        else coalesce(own.open_from, '-infinity') end as look_from
    from ${{ rows: 'wanted', columns: { payoutId: 'text', periodFrom: 'float8', periodTo: 'float8' } }} wanted
    cross join lateral (
      select merchant_id, payout_id, payee_hash, amount, batch, open_from from payments
      where payments.merchant_id = ${'merchantId'} and payments.payout_id = wanted.payout_id
      order by pays_at desc limit 1
    ) own
    cross join lateral (
      select file, row_number from payout_commands
      where payout_commands.merchant_id = ${'merchantId'} and payout_commands.payout_id = wanted.payout_id
      offset 0
    ) c
    left join lateral (
      select beneficiary_id_hash from beneficiary_payments
      where beneficiary_payments.merchant_id = ${'merchantId'} and beneficiary_payments.payout_id = wanted.payout_id
      limit 1
    ) named on true
  )
  select asked.payout_id, p.payout_id as other_payout_id, p.batch_id as other_batch_id, p.state, p.reason,
    ${mayBePaid} as may_be_paid, ${cameBack('p.merchant_id', 'p.payout_id')} as came_back,
    found.to_other_details, found.there_may_be_more
  from asked
  cross join lateral (
    with ${searches},
    to_same_id as materialized (
      select e.payout_id, e.pays_at from beneficiary_payments e
      where e.merchant_id = asked.merchant_id and e.beneficiary_id_hash = asked.beneficiary_id_hash
        and e.pays_at < asked.period_to
      order by e.pays_at desc limit ${mostCompared}
    ),
    to_other_details as materialized (
      select e.*, c.file is distinct from asked.file as of_other_file
      from to_same_id
      cross join lateral (
        select payout_id, batch, pays_at from payments
        where payments.merchant_id = asked.merchant_id and payments.payout_id = to_same_id.payout_id
          and payments.amount = asked.amount and payments.payee_hash <> asked.payee_hash
        offset 0
      ) e
      cross join lateral (
        select file from payout_commands
        where payout_commands.merchant_id = asked.merchant_id and payout_commands.payout_id = e.payout_id
        offset 0
      ) c
    )
    select e.payout_id, e.to_other_details, bound.there_may_be_more
    from (
      select (select count(*) from by_batch) >= ${mostCompared}
        or (select count(*) from reopened) = ${mostCompared}
        or (select count(*) from in_batch) = ${mostCompared}
        or (select count(*) from to_same_id where pays_at >= asked.period_from) = ${mostCompared} as there_may_be_more
    ) bound
    left join (
      select payout_id, false as to_other_details from in_batch e where asked_again and ${isAlive}
      union
      select payout_id, false from up_to_period e where ${repeated}
      union
      select payout_id, false from by_batch e where ${repeated}
      union
      select payout_id, false from reopened e where ${repeated}
      union
      select payout_id, true from to_other_details e
      where ${repeated} or e.batch = asked.batch and of_other_file and ${isAlive}
    ) e on e.payout_id <> asked.payout_id
  ) found
  left join lateral (
    select * from payouts
    where payouts.merchant_id = asked.merchant_id and payouts.payout_id = found.payout_id
    offset 0
  ) p on true
  where p.payout_id is not null or found.there_may_be_more
  order by asked.payout_id,
    case p.state when 'paid' then 0 when 'queued' then 2 when 'held' then 3 else 1 end, p.payout_id`
