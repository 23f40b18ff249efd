import type { HoldReason } from '../../../domain/commands/holds.ts'
import type { Instant } from '../../../domain/instant.ts'
import type { State } from '../../../domain/payout/states.ts'
import { saidOtherwise } from '../../../ledger/sql/said-otherwise.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'
import { cameBack } from './reversal.ts'

export type StoredHold = {
  payoutId: string
  reason: HoldReason
  earlierPayoutId: string | null
  earlierBatchId: string | null
  /** The merchant for whom the same file came first, if it is another one. */
  earlierMerchantId: string | null
  /** The earlier payout is of the payout's own batch. */
  inSameBatch: boolean
  /** The earlier payout's current state. */
  earlierState: State | null
  /** It ended unpaid, and the gateway has reported something else. */
  earlierMayBePaid: boolean
  /** A person has confirmed that its money came back. */
  earlierCameBack: boolean
  /** The earliest time at which the payout itself may be sent. */
  paysAt: Instant
  since: Instant
}

const mayBePaid: Fragment = { fragment: `${saidOtherwise} is not null` }

/** Why payouts were held for a person, whether they have been released or not. */
export const holdsOf = sql<{ merchantId: string; payoutIds: string[] }, StoredHold>`
  select h.*
  from unnest(${'payoutIds'}::text[]) with ordinality as wanted (payout_id, n)
  cross join lateral (
    select payout_id, reason, earlier_payout_id, earlier_batch_id, earlier_merchant_id, pays_at, since,
      (select state from payouts e
       where e.merchant_id = holds.merchant_id and e.payout_id = holds.earlier_payout_id) as earlier_state,
      coalesce((select ${mayBePaid} from payouts p
        where p.merchant_id = holds.merchant_id and p.payout_id = holds.earlier_payout_id), false) as earlier_may_be_paid,
      ${cameBack('holds.merchant_id', 'holds.earlier_payout_id')} as earlier_came_back,
      coalesce(earlier_batch_id = (select batch_id from payouts p
        where p.merchant_id = holds.merchant_id and p.payout_id = holds.payout_id), false) as in_same_batch
    from holds
    where holds.merchant_id = ${'merchantId'} and holds.payout_id = wanted.payout_id
    order by reason
  ) h
  order by n`

/** Payouts of a batch that wait for a release, for these reasons and no other, in the order in which they were accepted. */
export const heldOfBatch = sql<
  { merchantId: string; batchId: string; reasons: HoldReason[] },
  { payoutId: string }
>`
  select payout_id from payouts p
  where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} and awaits_release
    and not exists (
      select from holds
      where holds.merchant_id = p.merchant_id and holds.payout_id = p.payout_id
        and reason <> all(${'reasons'}::text[])
    )
  order by seq`

/** The latest release of each released payout, by whom and why. */
export const releasesOf = sql<
  { merchantId: string; payoutIds: string[] },
  { payoutId: string; at: Instant; note: string }
>`
  select r.*
  from unnest(${'payoutIds'}::text[]) as wanted (payout_id)
  cross join lateral (
    select payout_id, at, exchange->>'note' as note from history
    where history.merchant_id = ${'merchantId'} and history.payout_id = wanted.payout_id
      and source = 'OPERATOR' and from_state = 'held' and (to_state = 'queued' or reason = 'schedule')
    order by at desc limit 1
  ) r`

export type AwaitingRelease = { merchantId: string; reason: HoldReason; count: number }

export const awaitingRelease = sql<object, AwaitingRelease>`
  select merchant_id, reason, count(*)::int as count from payouts where awaits_release
  group by merchant_id, reason order by merchant_id, reason`
