import type { Instant } from '../../../domain/instant.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import { isOpen } from '../../../ledger/sql/columns.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

type FencedMerchant = { merchantId: string }

/** The next payouts on the list still to be asked about, after a payoutId, with where the ledger stands. */
export const openVersions = sql<
  FencedMerchant & { after: string; limit: number },
  Pick<Payout, 'payoutId' | 'state' | 'version' | 'attempt'>
>`
  select r.payout_id, p.state, p.version, p.attempt
  from recovered_payouts r
  join merchants m on m.merchant_id = r.merchant_id
  cross join lateral (
    select state, version, attempt from payouts
    where payouts.merchant_id = r.merchant_id and payouts.payout_id = r.payout_id
    offset 0
  ) p
  where r.merchant_id = ${'merchantId'} and r.payout_id > ${'after'} and (r.found is null or r.round <> m.recovery_round)
  order by r.payout_id limit ${'limit'}`

/** `untold`: see the columns. */
export const keepRecalled = sql<
  FencedMerchant & { payoutId: string; sent: boolean; untold: string | null; untoldAt: Instant | null }
>`
  update recovered_payouts
  set sent = sent or ${'sent'}, untold = ${'untold'}, untold_at = to_timestamp(${'untoldAt'}::float8 / 1000)
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/**
 * The places, from 1, of the payouts that the ledger lacks, or stored after the list was made (`late`): both are on no list, and
 * have not ended.
 */
export const unlisted = sql<{ merchantIds: string[]; payoutIds: string[] }, { place: number; late: boolean }>`
  select wanted.place::int, known.open is not null as late
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[]) with ordinality as wanted (merchant_id, payout_id, place)
  left join lateral (
    select ${isOpen} as open from payouts
    where payouts.merchant_id = wanted.merchant_id and payouts.payout_id = wanted.payout_id
    offset 0
  ) known on true
  where known.open is null
    or known.open and not exists (
      select from recovered_payouts r where r.merchant_id = wanted.merchant_id and r.payout_id = wanted.payout_id
      offset 0
    )`

/**
 * The payouts that the ledger lacks, or has below the published version. Leaves out merchants that it does not have, because
 * others may share the topics, and what a recovery has found before.
 */
export const lacksPublished = sql<
  { merchantIds: string[]; payoutIds: string[]; versions: number[] },
  { merchantId: string; payoutId: string; published: number; version: number | null }
>`
  select wanted.merchant_id, wanted.payout_id, wanted.published, p.version
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'versions'}::int[])
    as wanted (merchant_id, payout_id, published)
  join merchants m on m.merchant_id = wanted.merchant_id
  left join lateral (
    select version from payouts
    where payouts.merchant_id = wanted.merchant_id and payouts.payout_id = wanted.payout_id
    offset 0
  ) p on true
  where p.version < wanted.published
    or p.version is null and not exists (
      select from published_messages k where k.merchant_id = wanted.merchant_id and k.payout_id = wanted.payout_id
      offset 0
    )
  limit 1`

export const acceptedAt = sql<FencedMerchant & { payoutId: string }, { at: Instant }>`
  select accepted_at as at from payouts where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/**
 * The places, from 1, of the published transitions that a payout's history lacks, if that history is kept from its beginning:
 * neither under their version, nor as read back. For paid payouts only ends and submissions. A ledger that sent again after it was
 * set back used the same version for that, so a submission is its own only if an attempt was made at that time, which needs no
 * history to tell.
 */
export const notOwn = sql<
  {
    merchantIds: string[]
    payoutIds: string[]
    versions: number[]
    states: string[]
    reasons: (string | null)[]
    ats: Instant[]
  },
  { place: number }
>`
  select told.place::int
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'versions'}::int[], ${'states'}::text[], ${'reasons'}::text[],
              ${'ats'}::float8[])
    with ordinality as told (merchant_id, payout_id, version, state, reason, at, place)
  cross join lateral (
    select state, version from payouts
    where payouts.merchant_id = told.merchant_id and payouts.payout_id = told.payout_id
    offset 0
  ) p
  cross join lateral (
    select told.state in ('paid', 'failed', 'rejected', 'cancelled') as is_end,
      told.state <> 'submitting' or coalesce((
        select bool_or(date_trunc('milliseconds', claimed_at) = to_timestamp(told.at / 1000)) from attempts a
        where a.merchant_id = told.merchant_id and a.payout_id = told.payout_id and a.owner <> 'recovery'
      ), true) as is_made
    offset 0
  ) what
  cross join lateral (
    select bool_or(h.version is not null and h.from_state is null) as is_whole,
      bool_or(h.to_state = told.state and (what.is_end or h.reason is not distinct from told.reason)
        and coalesce(h.version, (h.exchange ->> 'publishedVersion')::int) = told.version
        and coalesce((h.exchange ->> 'publishedAt')::float8 = told.at, what.is_made or h.exchange ->> 'note' is not null)
      ) as is_own
    from history h
    where h.merchant_id = told.merchant_id and h.payout_id = told.payout_id
      and case when what.is_end then (told.state, told.version) <> (p.state, p.version)
        else p.state <> 'paid' or told.state = 'submitting' end
  ) story
  where (story.is_whole or not what.is_made) and not coalesce(story.is_own, false)`

/** The places, from 1, of the payouts that ended otherwise than published, or below the published version. */
export const withOtherEnd = sql<
  {
    merchantIds: string[]
    payoutIds: string[]
    states: (string | null)[]
    utrs: (string | null)[]
    agentpayOrderIds: (string | null)[]
    versions: number[]
  },
  { place: number }
>`
  select published.place::int
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'states'}::text[], ${'utrs'}::text[],
              ${'agentpayOrderIds'}::text[], ${'versions'}::int[])
    with ordinality as published (merchant_id, payout_id, state, utr, agentpay_order_id, version, place)
  cross join lateral (
    select state, utr, agentpay_order_id, version from payouts
    where payouts.merchant_id = published.merchant_id and payouts.payout_id = published.payout_id
    offset 0
  ) p
  where p.state in ('paid', 'failed', 'rejected', 'cancelled')
    and (p.state <> published.state or p.version < published.version
      or p.state = 'paid' and (upper(p.utr) <> upper(published.utr) or p.agentpay_order_id <> published.agentpay_order_id))`

/** A row: an anomaly reported this end, and its detail begins with `published`. */
export const wasTold = sql<FencedMerchant & { payoutId: string; published: string }, { told: boolean }>`
  select true as told from anomalies
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and kind = 'end-published'
    and starts_with(detail, ${'published'})
  limit 1`
