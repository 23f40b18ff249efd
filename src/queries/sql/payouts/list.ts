import type { Instant } from '../../../domain/instant.ts'
import type { Paise } from '../../../domain/money.ts'
import type { State } from '../../../domain/payout/states.ts'
import { isOpen } from '../../../ledger/sql/columns.ts'
import { sql } from '../../../platform/postgres/postgres.ts'
import { enteredAt } from './entered-at.ts'

export type Listed = {
  payoutId: string
  batchId: string | null
  rowNumber: number | null
  amount: Paise
  state: State
  reason: string | null
  /** For a payout held for a person: the payout, or the batch of the same file, that it is held for. */
  earlierPayoutId: string | null
  earlierBatchId: string | null
  /** The merchant of that batch, if it is another one. */
  earlierMerchantId: string | null
  /** The time before which it must not be sent; null: its command names none. */
  notBefore: Instant | null
  deadline: Instant
  /** When it entered this state for this reason; null: that part of the history has expired. */
  since: Instant | null
  updatedAt: Instant
  /** When a person confirmed that the transfer came back; null: nobody did. */
  reversedAt: Instant | null
  /** How often its id arrived again with other content, which was not accepted. */
  contradictions: number
}

type ListRequest = { merchantId: string; states: State[]; limit: number }

/** Evidence that moves nothing, a query and a late fee store a payout without a new version. */
const since = `case when p.version = 0 then p.accepted_at else coalesce(${enteredAt.fragment}, p.paid_at) end as since`

const listed = {
  fragment: `p.payout_id, p.batch_id, c.row_number, p.amount, p.state, p.reason, p.updated_at,
    ${since},
    c.not_before, p.deadline,
    (select earlier_payout_id from holds h
     where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id and h.reason = p.reason),
    (select earlier_batch_id from holds h
     where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id and h.reason = p.reason),
    (select earlier_merchant_id from holds h
     where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id and h.reason = p.reason),
    (select at as reversed_at from reversals r where r.merchant_id = p.merchant_id and r.payout_id = p.payout_id),
    (select coalesce(sum(a.times), 0)::int from anomalies a
     where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id and a.kind = 'same-id-other-content') as contradictions
    from payouts p join payout_commands c on c.merchant_id = p.merchant_id and c.payout_id = p.payout_id`,
}

export const payoutsOfBatch = sql<ListRequest & { batchId: string }, Listed>`
  select ${listed}
  where p.merchant_id = ${'merchantId'} and p.batch_id = ${'batchId'} and p.state = any(${'states'}::text[])
  order by p.seq limit ${'limit'}`

/** Only payouts that have not ended. */
export const openPayoutsInStates = sql<ListRequest, Listed>`
  select ${listed}
  where p.merchant_id = ${'merchantId'} and ${isOpen}
    and p.state = any(${'states'}::text[])
  order by p.seq limit ${'limit'}`

type ListPage = { after: string; limit: number }

/** From a page of all of the merchant's payouts, those in these states, up to the limit; nulls if there are none. */
export const pageInStates = sql<
  ListPage & { merchantId: string; states: State[]; wanted: number },
  { last: string | null } & ({ payoutId: string; seq: bigint } | { payoutId: null; seq: null })
>`
  with page as materialized (
    select payout_id, state, seq from payouts
    where merchant_id = ${'merchantId'} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  )
  select p.payout_id, p.seq, whole.last
  from (select max(payout_id) as last from page) whole
  left join (
    select * from page where state = any(${'states'}::text[]) order by seq limit ${'wanted'}
  ) p on true`

export const payoutsNamed = sql<{ merchantId: string; payoutIds: string[] }, Listed>`
  select ${listed}
  where p.merchant_id = ${'merchantId'} and p.payout_id = any(${'payoutIds'}::text[])
  order by p.seq`
