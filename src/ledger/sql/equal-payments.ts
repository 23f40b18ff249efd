import type { Fragment } from '../../platform/postgres/postgres.ts'
import { isEndedUnpaid } from './ended.ts'
import { saidOtherwise } from './said-otherwise.ts'

/*
 * Which payments are the same payment again: the same amount to the same beneficiary. Intake asks this about a new payout, a
 * release about a held one. `asked`, the payout asked about, has its merchant_id, payout_id, amount, batch, file and row_number,
 * the payee_hash, its pay periods (period_from, period_to, asked_from, asked_to), and look_from: when
 * payments begin that may count although they are of an earlier period.
 */

/**
 * How many other payments each search for one payout looks at. With more of the same, an operator decides: without a bound,
 * one file to one beneficiary would keep all commands waiting.
 */
export const MOST_COMPARED = 100
export const mostCompared: Fragment = { fragment: String(MOST_COMPARED) }

/** For the payout `p`: it ended unpaid, and the gateway has not reported otherwise. */
const isOutOfTheWay = `(${isEndedUnpaid} and said.open is null)`

/** For the payout `p`: it may still be paid, or nobody has yet acknowledged a report of the gateway that it may be. */
export const isOpen = `(p.state <> 'paid' and not ${isEndedUnpaid} or coalesce(said.open, false))`

/** For the payout `p`: it is paid, or it ended unpaid and somebody has acknowledged that the gateway reported otherwise. */
export const countsAsPaid = `(not ${isOutOfTheWay} and not ${isOpen})`

/** For the payout `p`: when it was last sent. */
export const sentAt = `(
  select claimed_at from attempts
  where attempts.merchant_id = p.merchant_id and attempts.payout_id = p.payout_id
  order by attempt desc limit 1
)`

/** For a row `e` of payments: an expression over its payout. */
export const payoutOf = (what: string) => `(
  select ${what}
  from payouts p cross join lateral (select ${saidOtherwise} as open offset 0) said
  where p.merchant_id = asked.merchant_id and p.payout_id = e.payout_id
)`
export const isAlive: Fragment = { fragment: payoutOf(`not ${isOutOfTheWay}`) }

const inOwnPeriod = (time: string) => `(${time} >= asked.period_from and ${time} < asked.period_to)`
const inAskedPeriod = (time: string) => `(${time} >= asked.asked_from and ${time} < asked.asked_to)`

/**
 * For a row `e` of payments: it pays the same in a batch other than that of the payout asked about. A payment counts in the
 * period that it was requested for and in the one in which it was sent; while it is open, in all from the first of them to the
 * present one.
 */
export const repeated: Fragment = {
  fragment: `e.batch <> asked.batch and ${payoutOf(`case
    when ${isOutOfTheWay} then false
    when ${inOwnPeriod('e.pays_at')} or coalesce(${inAskedPeriod('e.pays_at')}, false) then true
    when e.pays_at >= asked.period_to or asked.period_from > now() then false
    when ${isOpen} then true
    else coalesce(${inOwnPeriod(sentAt)}, false) or coalesce(${inAskedPeriod(sentAt)}, false)
  end`)}`,
}

/** The first `most` payments of the same amount to the same bank details, by when they pay or by their batch. */
export const same = (which: string, order: string, most = MOST_COMPARED, table = 'payments'): Fragment => ({
  fragment: `(
    select e.payout_id, e.batch, e.pays_at from ${table} e
    where e.merchant_id = asked.merchant_id and e.payee_hash = asked.payee_hash
      and e.amount = asked.amount and ${which}
    order by ${order} limit ${most}
  )`,
})
const upToPeriod = same('e.pays_at >= asked.look_from and e.pays_at < asked.period_to', 'e.pays_at, e.batch')
const reopened = same('e.pays_at < asked.period_to', 'e.pays_at, e.batch', MOST_COMPARED, 'reopened_payments')
const inBatchesBefore = same('e.batch < asked.batch', 'e.batch desc, e.pays_at desc')
const inBatchesBehind = same('e.batch > asked.batch', 'e.batch, e.pays_at')
const inSameBatch = same('e.batch = asked.batch and asked.period_from is not null', 'e.pays_at')

/** The common table expressions in which a statement finds what pays the same as `asked`: those whose rows are `repeated`, and in_batch. */
export const searches: Fragment = {
  fragment: `
  up_to_period as materialized ${upToPeriod.fragment},
  by_batch as materialized (
    select * from (${inBatchesBefore.fragment} union all ${inBatchesBehind.fragment}) e
    where (select count(*) from up_to_period) = ${MOST_COMPARED}
  ),
  reopened as materialized ${reopened.fragment},
  in_batch as materialized (
    select e.*, c.file is distinct from asked.file or (c.file, c.row_number) = (asked.file, asked.row_number)
      as asked_again
    from ${inSameBatch.fragment} e
    cross join lateral (
      select file, row_number from payout_commands
      where payout_commands.merchant_id = asked.merchant_id and payout_commands.payout_id = e.payout_id
      offset 0
    ) c
  )
  `,
}
