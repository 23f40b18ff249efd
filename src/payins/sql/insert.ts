import type { Payin } from '../../domain/payin/payin.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { payinColumns } from './columns.ts'

type NewPayin = {
  merchantId: string
  payinId: string
  accountId: string
  fingerprint: Buffer
  amount: bigint
  currency: string
  traceparent: string | null
  leaseMs: number
  expireMs: number
}

/** The intent to ask the gateway for a payin; no row where it exists already. */
export const insertPayin = sql<NewPayin, Payin>`
  insert into payins as p (merchant_id, payin_id, account_id, fingerprint, amount, currency, traceparent, state, version, due_at,
                           expires_at)
  values (${'merchantId'}, ${'payinId'}, ${'accountId'}, ${'fingerprint'}, ${'amount'}, ${'currency'}, ${'traceparent'}, 'creating', 1,
          now() + ${'leaseMs'} * interval '1 millisecond', now() + ${'expireMs'} * interval '1 millisecond')
  on conflict (merchant_id, payin_id) do nothing
  returning ${payinColumns}`

export const payinWithFingerprint = sql<
  { merchantId: string; payinId: string },
  Payin & { fingerprint: Buffer }
>`
  select ${payinColumns}, p.fingerprint from payins p
  where p.merchant_id = ${'merchantId'} and p.payin_id = ${'payinId'}`
