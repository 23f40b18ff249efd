import { ABOUT_FIELDS } from '../../domain/anomaly-details.ts'

/**
 * Of a row `p` of payouts that ended unpaid: whether the gateway has said anything but that it failed, and nobody has
 * acknowledged that. Null: it has not. Whoever acknowledges it has seen it, which does not make the payout unpaid.
 */
export const saidOtherwise = `(
  select bool_or(a.acknowledged_at is null) from anomalies a
  where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id and p.state in ('failed', 'cancelled')
    and a.source in ('APPLY', 'CALLBACK', 'QUERY') and a.kind not in ('${ABOUT_FIELDS.join(`', '`)}')
    and a.detail not like '%(failed, %'
)`
