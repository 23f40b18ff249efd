import type { Paise } from '../../domain/money.ts'
import { isEndedUnpaid } from '../../ledger/sql/ended.ts'
import { sumOfPaise } from '../../ledger/sql/estimated-fee.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

type OverlappingBatch = { merchantId: string; batchId: string }

/** A payout with such an end is not paid, and never will be. */
const isUnpaid: Fragment = { fragment: isEndedUnpaid }

/** A page of the batch's payouts. `isOpen`: it is paid, or may yet be. */
export const pageOfTakenIn = sql<
  OverlappingBatch & { after: string; limit: number },
  { last: string; payoutId: string; amount: Paise; isOpen: boolean }
>`
  select max(seq) over ()::text as last, payout_id, amount, not ${isUnpaid} as is_open
  from (
    select seq, payout_id, amount, state from payouts p
    where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} and seq > ('0' || ${'after'})::bigint
    order by seq limit ${'limit'}
  ) p`

/**
 * For these payoutIds, with who gets how much as a fingerprint: the rows that were accepted as the same payment and as another
 * one, and how many of both have ended unpaid, in amounts of the file.
 */
export const overlapOf = sql<
  {
    merchantId: string
    named: readonly { payoutId: string; amount: Paise; fingerprint: Buffer }[]
  },
  {
    sameRows: number
    sameAmount: Paise
    otherRows: number
    otherAmount: Paise
    unpaidRows: number
    unpaidAmount: Paise
  }
>`
  select
    count(*) filter (where is_same)::int as same_rows,
    ${sumOfPaise('given', 'is_same')} as same_amount,
    count(*) filter (where not is_same)::int as other_rows,
    ${sumOfPaise('given', 'not is_same')} as other_amount,
    count(*) filter (where is_unpaid)::int as unpaid_rows,
    ${sumOfPaise('given', 'is_unpaid')} as unpaid_amount
  from (
    select named.amount as given, p.amount = named.amount and coalesce(c.fingerprint = named.fingerprint, true) as is_same,
      ${isUnpaid} as is_unpaid
    from ${{ rows: 'named', columns: { payoutId: 'text', amount: 'bigint', fingerprint: 'bytea' } }} named
    cross join lateral (
      select amount, state from payouts p
      where p.merchant_id = ${'merchantId'} and p.payout_id = named.payout_id
      offset 0
    ) p
    left join lateral (
      select fingerprint from payout_commands
      where payout_commands.merchant_id = ${'merchantId'} and payout_commands.payout_id = named.payout_id
      offset 0
    ) c on true
  ) compared`
