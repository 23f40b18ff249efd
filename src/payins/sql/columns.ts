import type { Fragment } from '../../platform/postgres/postgres.ts'

/** The columns of `payins p` that make a Payin, named as its fields. */
export const payinColumns: Fragment = {
  fragment: `p.merchant_id, p.payin_id, p.account_id, p.amount, p.currency, p.state, p.reason, p.version, p.order_shown, p.pay_order_id, p.checkout,
    p.utr, p.paid_at, p.unknown_since, p.queries, p.not_found_count, p.asked_anew, p.asked_at, p.due_at, p.created_at,
    p.expires_at, p.traceparent`,
}
