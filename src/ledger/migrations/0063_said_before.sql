-- Up Migration
-- Older code: works

-- What was said before payouts kept it, by the anomalies about them: also by those of before they ended, as nothing beside an
-- anomaly tells when that was. Not in one transaction with the column, which nobody could read meanwhile.
update payouts p set said_otherwise = said.otherwise
from (
  select merchant_id, payout_id, case when bool_or(acknowledged_at is null) then 'open' else 'acknowledged' end as otherwise
  from anomalies
  where payout_id is not null and source in ('APPLY', 'CALLBACK', 'QUERY')
    and kind not in ('unreadable-fields', 'fee-above-amount', 'ambiguous-callback') and detail not like '%(failed, %'
  group by merchant_id, payout_id
) said
where p.merchant_id = said.merchant_id and p.payout_id = said.payout_id and p.state in ('failed', 'cancelled');

-- Down Migration
update payouts set said_otherwise = null where said_otherwise is not null;
