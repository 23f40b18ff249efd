-- Up Migration
-- Older code: works

-- Whose balance it was: the gateway account that was asked. Null: asked before this was kept, of a merchant with several.
alter table reconciliations add column account_id text;
update reconciliations r set account_id = known.account_id
from (
  select merchant_id, min(account_id) as account_id from gateway_settings group by merchant_id having count(distinct account_id) = 1
) known
where known.merchant_id = r.merchant_id;

-- Down Migration
alter table reconciliations drop column account_id;
