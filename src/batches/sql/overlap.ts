import type { Paise } from '../../domain/money.ts'
import { isEndedUnpaid } from '../../ledger/sql/ended.ts'
import { sumOfPaise } from '../../ledger/sql/estimated-fee.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

type OverlappingBatch = { merchantId: string; batchId: string }

/** A payout with such an end is not paid, and never will be. */
const isUnpaid: Fragment = { fragment: isEndedUnpaid }

/** Over a page of the batch's payouts: all of them, and those that are paid or may yet be. */
export const pageOfTakenIn = sql<
  OverlappingBatch & { after: string; limit: number },
  { last: string | null; rows: number; openRows: number; openAmount: Paise }
>`
  select max(seq)::text as last, count(*)::int as rows, count(*) filter (where not ${isUnpaid})::int as open_rows,
    ${sumOfPaise('amount', `not ${isUnpaid.fragment}`)} as open_amount
  from (
    select seq, amount, state from payouts p
    where merchant_id = ${'merchantId'} and batch_id = ${'batchId'} and seq > ('0' || ${'after'})::bigint
    order by seq limit ${'limit'}
  ) p`

/**
 * For these payoutIds, with who gets how much as a fingerprint: the rows that were accepted as the same payment and as another
 * one, in amounts of the file; and, of the payouts up to `upTo` under these ids, how many there are, and those that are paid or
 * may yet be.
 */
export const overlapOf = sql<
  {
    merchantId: string
    upTo: string
    named: readonly { payoutId: string; amount: Paise; fingerprint: Buffer }[]
  },
  {
    sameRows: number
    sameAmount: Paise
    otherRows: number
    otherAmount: Paise
    takenRows: number
    openRows: number
    openAmount: Paise
  }
>`
  select
    count(*) filter (where is_same)::int as same_rows,
    ${sumOfPaise('given', 'is_same')} as same_amount,
    count(*) filter (where not is_same)::int as other_rows,
    ${sumOfPaise('given', 'not is_same')} as other_amount,
    count(*) filter (where is_earlier)::int as taken_rows,
    count(*) filter (where is_earlier and not is_unpaid)::int as open_rows,
    ${sumOfPaise('taken', 'is_earlier and not is_unpaid')} as open_amount
  from (
    select named.amount as given, p.amount as taken, p.is_unpaid, p.seq <= ${'upTo'}::bigint as is_earlier,
      p.amount = named.amount and coalesce(c.fingerprint = named.fingerprint, true) as is_same
    from ${{ rows: 'named', columns: { payoutId: 'text', amount: 'bigint', fingerprint: 'bytea' } }} named
    cross join lateral (
      select seq, amount, ${isUnpaid} as is_unpaid from payouts p
      where p.merchant_id = ${'merchantId'} and p.payout_id = named.payout_id
      offset 0
    ) p
    left join lateral (
      select fingerprint from payout_commands
      where payout_commands.merchant_id = ${'merchantId'} and payout_commands.payout_id = named.payout_id
      offset 0
    ) c on true
  ) compared`
