import { sql } from '../../../platform/postgres/postgres.ts'

type Accepted = {
  merchantIds: string[]
  payoutIds: string[]
  batchIds: (string | null)[]
  orderNos: (string | null)[]
  amounts: bigint[]
  currencies: string[]
  priorities: number[]
  states: string[]
  reasons: (string | null)[]
  versions: number[]
  cancelRequests: (string | null)[]
  readies: boolean[]
  deadlines: number[]
  dueAts: (number | null)[]
}

/** Inserts in the order of the arrays, which is the order of age. Ids that exist already are left out of the answer. */
export const insertPayouts = sql<Accepted, { merchantId: string; payoutId: string }>`
  insert into payouts (merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, reason, version,
                       cancel_request, ready, deadline, due_at)
  select merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, reason, version,
         cancel_request, ready, to_timestamp(deadline / 1000), to_timestamp(due_at / 1000)
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'batchIds'}::text[], ${'orderNos'}::text[],
              ${'amounts'}::bigint[], ${'currencies'}::text[], ${'priorities'}::smallint[], ${'states'}::text[],
              ${'reasons'}::text[], ${'versions'}::int[],
              ${'cancelRequests'}::text[], ${'readies'}::bool[], ${'deadlines'}::float8[], ${'dueAts'}::float8[])
    with ordinality as c (merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, reason,
                          version, cancel_request, ready, deadline, due_at, n)
  order by n
  on conflict (merchant_id, payout_id) do nothing
  returning merchant_id, payout_id`

type Commands = {
  merchantIds: string[]
  payoutIds: string[]
  batchIds: (string | null)[]
  rowNumbers: (number | null)[]
  files: (bigint | null)[]
  fingerprints: Buffer[]
  contents: Buffer[]
  sealeds: Buffer[]
  /** JSON text. */
  faults: (string | null)[]
  traceparents: (string | null)[]
  notBefores: (number | null)[]
}

export const insertCommands = sql<Commands>`
  insert into payout_commands (merchant_id, payout_id, batch_id, row_number, file, fingerprint, content, sealed, faults,
                               traceparent, not_before)
  select merchant_id, payout_id, batch_id, row_number, file, fingerprint, content, sealed, faults, traceparent,
         to_timestamp(not_before / 1000)
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'batchIds'}::text[], ${'rowNumbers'}::int[],
              ${'files'}::bigint[], ${'fingerprints'}::bytea[], ${'contents'}::bytea[], ${'sealeds'}::bytea[], ${'faults'}::jsonb[],
              ${'traceparents'}::text[], ${'notBefores'}::float8[])
    as c (merchant_id, payout_id, batch_id, row_number, file, fingerprint, content, sealed, faults, traceparent, not_before)`

/** What an id stands for. `content`: null where it was taken in before that was kept. */
export type TakenIn = {
  merchantId: string
  payoutId: string
  fingerprint: Buffer
  content: Buffer | null
  refused: boolean
}

/** Of ids that are known. */
export const takenIn = sql<{ merchantIds: string[]; payoutIds: string[] }, TakenIn>`
  select wanted.merchant_id, wanted.payout_id, c.fingerprint, c.content, c.faults is not null as refused
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[]) as wanted (merchant_id, payout_id)
  cross join lateral (
    select fingerprint, content, faults from payout_commands
    where payout_commands.merchant_id = wanted.merchant_id and payout_commands.payout_id = wanted.payout_id
    offset 0
  ) c`
