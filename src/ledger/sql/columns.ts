import type { Fragment } from '../../platform/postgres/postgres.ts'

/** The columns of `payouts p` that make a Payout, named as its fields. A locked one is read after it was locked. */
export const payoutColumns: Fragment = {
  fragment: `p.merchant_id, p.payout_id, p.batch_id, p.order_no, p.amount, p.currency, p.state, p.reason, p.version,
    p.attempt, p.account_id, p.doubted, p.turned_away, p.absence_confirmed, p.unpaid_codes, p.refusal, p.unreported,
    p.said_otherwise, p.cancel_request, p.order_shown, p.order_besides, p.agentpay_order_id, p.fee, p.utr, p.deadline, p.unknown_since, p.queries, p.not_found_count, p.asked_at, p.ready, p.due_at,
    case when p.updated_at <= clock_timestamp() + case when p.state in ('submitting', 'unknown', 'processing') then interval '30 s' else interval '0' end
      then p.updated_at end as last_change_at`,
}

/** The payout has not ended. This is the condition of the index `payouts_open` to the letter, or Postgres would not use it. */
export const isOpen: Fragment = { fragment: 'coalesce(due_at is not null or in_review, false)' }

/** When time alone changes an open payout; the same expression as in the index payouts_timers. */
export const timerAt: Fragment = {
  fragment: `(case when state in ('unknown', 'processing') then deadline else due_at end)`,
}
