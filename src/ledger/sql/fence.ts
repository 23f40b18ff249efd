import type { Instant } from '../../domain/instant.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

/**
 * Since when, by whom and why a merchant is fenced; times by the database's clock. `round`: what a recovery was answered
 * in an earlier one counts no more. `oneStep`: one step of the server's history raised it, and nothing else.
 */
export type Fence = {
  merchantId: string
  since: Instant
  by: string
  reason: string
  oneStep: boolean
  round: number
}

/**
 * Waits for a claim under way: what is claimed later has seen the fence. One that stands is left as it is, and a new one begins a new round. The row may be
 * the merchant's first: dispatch finds other settings than the empty hash, and begins as ever.
 */
export const raiseFence = sql<{ merchantId: string; by: string; reason: string; feeEstimate: bigint }, Fence>`
  insert into merchants as m (merchant_id, settings_hash, fee_estimate, recovering_since, recovering_by,
                              recovering_reason)
  values (${'merchantId'}, '', ${'feeEstimate'}, now(), ${'by'}, ${'reason'})
  on conflict (merchant_id) do update
  set recovering_since = coalesce(m.recovering_since, excluded.recovering_since),
      recovering_by = coalesce(m.recovering_by, excluded.recovering_by),
      recovering_reason = coalesce(m.recovering_reason, excluded.recovering_reason),
      recovering_one_step = m.recovering_one_step and m.recovering_since is not null,
      recovery_began = case when m.recovering_since is not null then m.recovery_began end,
      recovery_round = m.recovery_round + case when m.recovering_since is null then 1 else 0 end
  returning merchant_id, recovering_since as since, recovering_by as by, recovering_reason as reason,
    recovering_one_step as one_step, recovery_round as round`

/** Locks the row of a merchant, which no row is given of where there is none, unless another holds it. */
export const lockIfFree = sql<{ merchantId: string }, { isFree: boolean }>`
  select free.merchant_id is not null as is_free
  from (select merchant_id from merchants where merchant_id = ${'merchantId'}) known
  left join lateral (
    select merchant_id from merchants where merchant_id = ${'merchantId'} for no key update skip locked
  ) free on true`

/**
 * One of these payouts was sent though the gateway was asked about it, and did not have it, or though nothing was asked about
 * it: so what a recovery was answered is of another time. Evidence of what is still to be asked about changes nothing. Of what
 * was rejected or cancelled the gateway had nothing either. A payoutId is null where nobody knows the payout. The `case` has the
 * list searched only where it matters.
 */
const answeredBefore: Fragment = {
  fragment: `case when exists (
      select from unnest(asked.payout_ids) as sent (payout_id)
      where not exists (
        select from recovered_payouts r
        where r.merchant_id = m.merchant_id and r.payout_id = sent.payout_id
          and (r.found is null or r.round <> m.recovery_round
            or r.found not in ('never-sent', 'not-found', 'rejected', 'cancelled'))
      )
    ) then exists (
      select from recovered_payouts r
      where r.merchant_id = m.merchant_id and r.round = m.recovery_round and r.found in ('never-sent', 'not-found')
    ) end`,
}

type SentOrder = { merchantId: string; payoutIds: (string | null)[] }

/** A row: a recovery that is under way is to ask about everything anew. */
export const isToAskAnew = sql<SentOrder>`
  select from merchants m, (select ${'payoutIds'}::text[] as payout_ids) asked
  where m.merchant_id = ${'merchantId'} and ${answeredBefore}`

/** Has it do so. */
export const askAnew = sql<SentOrder>`
  update merchants m set recovery_round = m.recovery_round + 1, recovery_began = null
  from (select ${'payoutIds'}::text[] as payout_ids) asked
  where m.merchant_id = ${'merchantId'} and ${answeredBefore}`
