import { payoutColumns } from '../../ledger/sql/columns.ts'
import type { Payout } from '../../payout/payout.ts'
import { sql } from '../../platform/postgres.ts'

/** Payouts whose time has come, the longest due first. Those that another process holds are left to it. */
export const lockDue = sql<{ limit: number }, Payout>`
  select ${payoutColumns}
  from payouts p
  where p.due_at <= now()
  order by p.due_at
  limit ${'limit'}
  for update of p skip locked`
