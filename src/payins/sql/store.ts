import { saidHash } from '../../ledger/sql/store.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** One element per changed payin; times in milliseconds since the epoch. */
type Changed = {
  merchantIds: string[]
  payinIds: string[]
  states: string[]
  reasons: (string | null)[]
  versions: number[]
  payOrderIds: (string | null)[]
  /** JSON text. */
  checkouts: (string | null)[]
  utrs: (string | null)[]
  paidAts: (number | null)[]
  unknownSinces: (number | null)[]
  queries: number[]
  absences: number[]
  askedAts: (number | null)[]
  dueAts: (number | null)[]
}

/** The payins are locked already, so each stays at the place where it is found. */
export const updatePayins = sql<Changed>`
  update payins p
  set state = c.state, reason = c.reason, version = c.version, pay_order_id = c.pay_order_id, checkout = c.checkout,
      utr = c.utr, paid_at = to_timestamp(c.paid_at / 1000), unknown_since = to_timestamp(c.unknown_since / 1000),
      queries = c.queries, absences = c.absences, asked_at = to_timestamp(c.asked_at / 1000), due_at = to_timestamp(c.due_at / 1000), updated_at = now()
  from (
    select given.*,
      (select ctid from payins
       where payins.merchant_id = given.merchant_id and payins.payin_id = given.payin_id) as place
    from unnest(${'merchantIds'}::text[], ${'payinIds'}::text[], ${'states'}::text[], ${'reasons'}::text[],
                ${'versions'}::int[], ${'payOrderIds'}::text[], ${'checkouts'}::jsonb[], ${'utrs'}::text[],
                ${'paidAts'}::float8[], ${'unknownSinces'}::float8[], ${'queries'}::int[], ${'absences'}::int[],
                ${'askedAts'}::float8[], ${'dueAts'}::float8[])
      as given (merchant_id, payin_id, state, reason, version, pay_order_id, checkout, utr, paid_at, unknown_since,
                queries, absences, asked_at, due_at)
  ) c
  where p.ctid = c.place`

type PayinHistoryColumns = {
  merchantIds: string[]
  payinIds: string[]
  /** Null where the evidence moved nothing. */
  versions: (number | null)[]
  fromStates: (string | null)[]
  toStates: string[]
  reasons: (string | null)[]
  sources: string[]
  /** JSON text. */
  exchanges: (string | null)[]
}

export const insertPayinHistory = sql<PayinHistoryColumns>`
  insert into history (merchant_id, payin_id, version, from_state, to_state, reason, source, exchange, said)
  select told.*, case when version is null then ${saidHash} end
  from unnest(${'merchantIds'}::text[], ${'payinIds'}::text[], ${'versions'}::int[], ${'fromStates'}::text[],
              ${'toStates'}::text[], ${'reasons'}::text[], ${'sources'}::text[], ${'exchanges'}::jsonb[])
    as told (merchant_id, payin_id, version, from_state, to_state, reason, source, exchange)`
