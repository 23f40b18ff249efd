import { type Paise, paise } from '../../src/domain/money.ts'
import { type Database, sql } from '../../src/platform/postgres/postgres.ts'

/** What payoutd's ledger contains about one payout, read by statements that no stage of payoutd uses. */
export type LedgerRecord = {
  merchantId: string
  payoutId: string
  orderNo: string | null
  amount: Paise
  /** As in docs/design.md, "States". */
  state: string
  version: number
  /** The order numbers that payoutd committed to send, one per attempt. */
  attempts: string[]
  history: LedgerEvidence[]
}

/**
 * `version` is null if the evidence changed nothing. `times`: how often it arrived. `said`: the fields of the
 * gateway's statement, if it is one.
 */
export type LedgerEvidence = {
  version: number | null
  toState: string
  source: string
  times: number
  said: Record<string, unknown> | null
}

type LedgerRow = Omit<LedgerRecord, 'amount'> & { amount: bigint }

/** The ledger keeps a callback as a request, an answer as a response. */
const everything = sql<{ merchantId: string }, LedgerRow>`
  select p.merchant_id, p.payout_id, p.order_no, p.amount, p.state, p.version,
    (select coalesce(json_agg(a.order_no order by a.attempt), '[]') from attempts a
     where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id) as attempts,
    (select coalesce(json_agg(json_build_object('version', h.version, 'toState', h.to_state, 'source', h.source,
       'times', h.times,
       'said', coalesce(h.exchange -> 'response', h.exchange -> 'request')) order by h.at, h.version nulls last), '[]')
     from history h where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id) as history
  from payouts p where p.merchant_id = ${'merchantId'} order by p.payout_id`

/** Everything of one merchant, ordered by payoutId. */
export const readLedgerRecords = async (db: Database, merchantId: string): Promise<LedgerRecord[]> =>
  (await db.run(everything, { merchantId })).map((row) => ({ ...row, amount: paise(row.amount) }))
