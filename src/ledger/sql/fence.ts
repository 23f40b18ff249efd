import type { Instant } from '../../domain/instant.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

/**
 * Since when, by whom and why a merchant is fenced; times by the database's clock. `round`: answers to a recovery in an earlier
 * round no longer count. `oneStep`: one step of the server's history raised the fence, and nothing else.
 */
export type Fence = {
  merchantId: string
  since: Instant
  by: string
  reason: string
  oneStep: boolean
  round: number
}

/** The columns of a Fence. */
export const fenceColumns: Fragment = {
  fragment: `merchant_id, recovering_since as since, recovering_by as by, recovering_reason as reason,
    recovering_one_step as one_step, recovery_round as round`,
}

/**
 * Waits for a claim under way; every later claim sees the fence. Leaves a standing fence as it is; a new fence begins a new
 * round. The row may be the merchant's first: dispatch finds its empty settings hash different from its own, and begins as ever.
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
  returning ${fenceColumns}`

/** Run it with the evidence: from the commit on, no claim takes anything until every merchant is fenced. */
export const noteLoss = sql<{ reason: string }>`insert into proven_losses (reason) values (${'reason'})`

export const provenLosses = sql<object, { position: bigint; reason: string }>`
  select position, reason from proven_losses order by position`

export const forgetLosses = sql<{ positions: bigint[] }>`
  delete from proven_losses where position = any(${'positions'}::bigint[])`

/** Of the merchants in the settings and all others in the ledger. */
export const unfencedMerchants = sql<{ merchantIds: string[] }, { merchantId: string }>`
  select unnest(${'merchantIds'}::text[]) as merchant_id
  union select merchant_id from merchants
  except select merchant_id from merchants where recovering_since is not null
  order by 1`

/** Locks the row of a merchant unless another transaction holds it. Returns no row if the merchant has none. */
export const lockIfFree = sql<{ merchantId: string }, { isFree: boolean }>`
  select free.merchant_id is not null as is_free
  from (select merchant_id from merchants where merchant_id = ${'merchantId'}) known
  left join lateral (
    select merchant_id from merchants where merchant_id = ${'merchantId'} for no key update skip locked
  ) free on true`

/**
 * One of these payouts was sent although the gateway answered the recovery that it did not have it, or although the recovery
 * did not ask about it: so the recovery's answers are out of date. Evidence about a payout that it has yet to ask about changes
 * nothing. The gateway did not have rejected and cancelled payouts either. A payoutId is null if the payout is unknown. The
 * `case` makes Postgres search the list only where it matters.
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

/** Returns a row if a recovery that is under way must ask about everything again. */
export const isToAskAnew = sql<SentOrder>`
  select from merchants m, (select ${'payoutIds'}::text[] as payout_ids) asked
  where m.merchant_id = ${'merchantId'} and ${answeredBefore}`

/** Makes that recovery ask about everything again. */
export const askAnew = sql<SentOrder>`
  update merchants m set recovery_round = m.recovery_round + 1, recovery_began = null
  from (select ${'payoutIds'}::text[] as payout_ids) asked
  where m.merchant_id = ${'merchantId'} and ${answeredBefore}`
