import type { PayoutKey } from '../../../domain/identifiers.ts'
import type { Payout } from '../../../domain/payout/payout.ts'

import { sql } from '../../../platform/postgres/postgres.ts'

/** Inserts in the order of the rows, which is the order of age. Does not return ids that exist already. */
export const insertPayouts = sql<{ payouts: readonly (Payout & { priority: number })[] }, PayoutKey>`
  insert into payouts (merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, reason, version,
                       cancel_request, ready, deadline, due_at)
  select merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, reason, version,
         cancel_request, ready, to_timestamp(deadline / 1000), to_timestamp(due_at / 1000)
  from ${{
    rows: 'payouts',
    columns: {
      ...{
        merchantId: 'text',
        payoutId: 'text',
        batchId: 'text',
        orderNo: 'text',
        amount: 'bigint',
        currency: 'text',
      },
      ...{
        priority: 'smallint',
        state: 'text',
        reason: 'text',
        version: 'int',
        cancelRequest: 'text',
        ready: 'bool',
      },
      ...{ deadline: 'float8', dueAt: 'float8' },
    },
    ordered: true,
  }} c
  order by n
  on conflict (merchant_id, payout_id) do nothing
  returning merchant_id, payout_id`

/** `faults`: JSON text. */
type NewCommand = PayoutKey & {
  batchId: string | null
  rowNumber: number | null
  file: bigint | null
  fingerprint: Buffer
  content: Buffer
  sealed: Buffer
  faults: string | null
  traceparent: string | null
  notBefore: number | null
}

export const insertCommands = sql<{ commands: readonly NewCommand[] }>`
  insert into payout_commands (merchant_id, payout_id, batch_id, row_number, file, fingerprint, content, sealed, faults,
                               traceparent, not_before)
  select merchant_id, payout_id, batch_id, row_number, file, fingerprint, content, sealed, faults, traceparent,
         to_timestamp(not_before / 1000)
  from ${{
    rows: 'commands',
    columns: {
      ...{ merchantId: 'text', payoutId: 'text', batchId: 'text', rowNumber: 'int', file: 'bigint' },
      ...{ fingerprint: 'bytea', content: 'bytea', sealed: 'bytea', faults: 'jsonb', traceparent: 'text' },
      ...{ notBefore: 'float8' },
    },
  }} c`

/** What an id stands for. `content`: null for payouts from before payoutd stored it. */
export type TakenIn = PayoutKey & { fingerprint: Buffer; content: Buffer | null; refused: boolean }

/** Returns no row for an unknown id. */
export const takenIn = sql<{ wanted: readonly PayoutKey[] }, TakenIn>`
  select wanted.merchant_id, wanted.payout_id, c.fingerprint, c.content, c.faults is not null as refused
  from ${{ rows: 'wanted', columns: { merchantId: 'text', payoutId: 'text' } }} wanted
  cross join lateral (
    select fingerprint, content, faults from payout_commands
    where payout_commands.merchant_id = wanted.merchant_id and payout_commands.payout_id = wanted.payout_id
    offset 0
  ) c`
