import type { PayoutKey } from '../../../domain/identifiers.ts'
import type { Instant } from '../../../domain/instant.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import type { OwnTransition, PublishedTransition } from '../../../domain/recovery/published-story.ts'
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
 * The payouts that the ledger lacks, or stored after the list was made (`late`): both are on no list, and have not ended.
 */
export const unlisted = sql<{ payouts: readonly PayoutKey[] }, PayoutKey & { late: boolean }>`
  select wanted.*, known.open is not null as late
  from ${{ rows: 'payouts', columns: { merchantId: 'text', payoutId: 'text' } }} wanted
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
  { payouts: readonly (PayoutKey & { published: number })[] },
  PayoutKey & { published: number; version: number | null }
>`
  select wanted.*, p.version
  from ${{ rows: 'payouts', columns: { merchantId: 'text', payoutId: 'text', published: 'int' } }} wanted
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

/** The transitions of a payout in the ledger's own history, those that a recovery read back among them. */
export const ownTransitions = sql<PayoutKey, OwnTransition>`
  select version, from_state, to_state, coalesce(published_at, at) as at from history
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and version is not null`

/** When the attempts of a payout were submitted, as far as the ledger knows. */
export const submissions = sql<FencedMerchant & { payoutId: string }, { at: Instant }>`
  select claimed_at as at from attempts where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/**
 * The places, from 1, of the published transitions that a payout's own story lacks: a transition is its own if it happened at the
 * published time. Another ledger may have used the same version for the same state. Nothing tells about those from before the
 * oldest month of history that is kept, but for submissions, because attempts are kept.
 */
export const notOwn = sql<
  {
    published: readonly (PayoutKey & Pick<PublishedTransition, 'version' | 'fromState' | 'toState' | 'at'>)[]
  },
  { place: number }
>`
  select wanted.place
  from (
    select merchant_id, payout_id, version, to_state as state, to_timestamp(at / 1000) as at, n::int as place,
      to_state = 'submitting' and from_state is distinct from 'submitting' as is_submission
    from ${{
      rows: 'published',
      columns: {
        ...{ merchantId: 'text', payoutId: 'text', version: 'int', fromState: 'text', toState: 'text' },
        at: 'float8',
      },
      ordered: true,
    }} given
  ) wanted
  cross join lateral (
    select version from payouts
    where payouts.merchant_id = wanted.merchant_id and payouts.payout_id = wanted.payout_id
    offset 0
  ) p
  cross join lateral (
    select bool_or(h.version is not null and h.from_state is null) or min(h.at) <= wanted.at as is_kept,
      bool_or(h.to_state = wanted.state
        and coalesce(h.published_at = wanted.at, h.version = wanted.version and not wanted.is_submission)) as is_own
    from history h
    where h.merchant_id = wanted.merchant_id and h.payout_id = wanted.payout_id
  ) story
  cross join (
    select min(substring(pg_get_expr(relpartbound, inhrelid) from $$FROM \\('([^']+)'\\)$$)::timestamptz) as month
    from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = 'history'::regclass
  ) oldest
  where not coalesce(story.is_own, false) and (p.version < wanted.version or case
    when wanted.is_submission then not exists (
      select from attempts a
      where a.merchant_id = wanted.merchant_id and a.payout_id = wanted.payout_id
        and date_trunc('milliseconds', a.claimed_at) = wanted.at
      offset 0
    )
    else story.is_kept or wanted.at >= oldest.month
  end)`
