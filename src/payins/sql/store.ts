import type { Payin } from '../../domain/payin/payin.ts'
import { evidenceHash, type HistoryRow } from '../../ledger/sql/store.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** `checkout`: JSON text. */
type PayinRow = Omit<Payin, 'checkout'> & { checkout: string | null }

/** The caller has locked the payins, so each row keeps the place (ctid) found here. */
export const updatePayins = sql<{ payins: readonly PayinRow[] }>`
  update payins p
  set state = c.state, reason = c.reason, version = c.version, order_shown = c.order_shown, pay_order_id = c.pay_order_id, checkout = c.checkout,
      utr = c.utr, paid_at = to_timestamp(c.paid_at / 1000), unknown_since = to_timestamp(c.unknown_since / 1000),
      queries = c.queries, not_found_count = c.not_found_count, asked_anew = c.asked_anew, asked_at = to_timestamp(c.asked_at / 1000), due_at = to_timestamp(c.due_at / 1000), updated_at = now()
  from (
    select given.*,
      (select ctid from payins
       where payins.merchant_id = given.merchant_id and payins.payin_id = given.payin_id) as place
    from ${{
      rows: 'payins',
      columns: {
        ...{
          merchantId: 'text',
          payinId: 'text',
          state: 'text',
          reason: 'text',
          version: 'int',
          orderShown: 'bool',
          payOrderId: 'text',
        },
        ...{ checkout: 'jsonb', utr: 'text', paidAt: 'float8', unknownSince: 'float8', queries: 'int' },
        ...{ notFoundCount: 'int', askedAnew: 'bool', askedAt: 'float8', dueAt: 'float8' },
      },
    }} given
  ) c
  where p.ctid = c.place`

/** An entry of a payin's history. */
export type PayinHistoryRow = Omit<HistoryRow, 'payoutId' | 'publishedAt'> & { payinId: string }

export const insertPayinHistory = sql<{ history: readonly PayinHistoryRow[] }>`
  insert into history (merchant_id, payin_id, version, from_state, to_state, reason, source, exchange, evidence_hash)
  select entries.*, case when version is null then ${evidenceHash} end
  from ${{
    rows: 'history',
    columns: {
      ...{ merchantId: 'text', payinId: 'text', version: 'int', fromState: 'text', toState: 'text' },
      ...{ reason: 'text', source: 'text', exchange: 'jsonb' },
    },
  }} entries`
