import { sql } from '../../platform/postgres.ts'

type Settings = { merchantId: string; settingsHash: string }

export const isControlled = sql<Settings, { controlled: boolean }>`
  select control_hash = ${'settingsHash'} as controlled from merchants
  where merchant_id = ${'merchantId'} and control_hash is not null`

export const keepControl = sql<Settings>`
  update merchants set control_hash = ${'settingsHash'} where merchant_id = ${'merchantId'}`

/** Any order of which the gateway itself said that it exists. */
export const someKnownOrder = sql<{ merchantId: string }, { orderNo: string }>`
  select order_no from payouts
  where merchant_id = ${'merchantId'} and agentpay_order_id is not null and state in ('processing', 'paid', 'failed')
  limit 1`
