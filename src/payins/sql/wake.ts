import { estimatedFee } from '../../ledger/sql/estimated-fee.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/**
 * Voids the balance snapshot of merchants whose next payout it does not cover, so that dispatch asks for the balance before its
 * next claim. Merchants whose payouts leave as usual keep theirs, because a claim without a snapshot waits. Call it with the
 * payins locked; nothing locks a payin while it holds a merchant.
 */
export const wakeDispatch = sql<{ merchantIds: string[] }>`
  update merchants m
  set available = null
  where m.merchant_id = any (array(
    select merchant_id from merchants where merchant_id = any(${'merchantIds'}::text[]) order by 1 for update
  )) and exists (
    select from (
      select amount from payouts p
      where p.merchant_id = m.merchant_id and p.ready
      order by p.priority desc, p.seq
      limit 1
    ) p
    where p.amount + ${estimatedFee} > m.available::numeric - m.snapshot_in_doubt - (m.claimed_total - m.snapshot_claimed)
  )`
