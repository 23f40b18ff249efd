import { sql } from '../../platform/postgres/postgres.ts'

/** Any payin that this account itself confirmed to exist. */
export const someKnownPayin = sql<{ merchantId: string; accountId: string }, { payinId: string }>`
  select payin_id from payins
  where merchant_id = ${'merchantId'} and account_id = ${'accountId'} and pay_order_id is not null and state in ('open', 'paid', 'failed')
  limit 1`
