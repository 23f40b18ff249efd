import type { HoldReason } from '../../../domain/commands/holds.ts'
import type { Instant } from '../../../domain/instant.ts'
import {
  countsAsPaid,
  isAlive,
  isOpen,
  MOST_COMPARED,
  mostCompared,
  payoutOf,
  repeated,
  same,
  searches,
  sentAt,
} from '../../../ledger/sql/equal-payments.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'

/**
 * Makes transactions with commands of one merchant take turns, each until it ends: two commands that came at the same moment
 * from two partitions would not see each other. In one order everywhere, so that none waits for a transaction that waits for it.
 */
export const takeTurns = sql<{ merchantIds: string[] }>`
  select pg_advisory_xact_lock(hashtextextended('intake of ' || merchant_id, 0))
  from (select distinct unnest(${'merchantIds'}::text[]) collate "C" as merchant_id order by 1) merchants`

/** A payout that was just inserted. */
export type Payment = {
  merchantId: string
  payoutId: string
  /** A payout without a batch is a batch of its own, with a name that no batchId can have. */
  batch: string
  amount: bigint
  paysAt: number
  /** The payee, to look for duplicates. */
  payeeHash: Buffer
  /** The bank details, which may have changed under an id. */
  beneficiaryHash: Buffer
  /** Null: the command has no id. */
  beneficiaryIdHash: Buffer | null
  /** See payout_commands.file; null: the payout came in no file. */
  file: bigint | null
  rowNumber: number | null
  /** The pay period in which the payout may be sent; null: do not look for duplicates. */
  periodFrom: number | null
  periodTo: number | null
  /** The earlier period that it was requested for, and when in it; null: the same period. */
  askedFrom: number | null
  askedTo: number | null
  askedAt: number | null
  /** When the period before the present one began; null: do not look for duplicates. */
  lastFrom: number | null
  changesWanted: boolean
}

export type Hold = {
  merchantId: string
  payoutId: string
  reason: HoldReason
  earlierPayoutId: string | null
  earlierBatchId: string | null
  /** Null: the payout's own merchant. */
  earlierMerchantId: string | null
  since: Instant
}

/** The bound if there is no note yet of when to start looking: once per beneficiary and amount. */
const MOST_LOOKED_THROUGH = 1_000

const beforeLast = same('e.pays_at >= asked.open_from and e.pays_at < asked.last_from', 'e.pays_at, e.batch')

/**
 * The time from which a later equal payment must look: all before it have ended, and were sent before the last period. Those
 * that change later are in reopened_payments.
 */
const openFrom = (earlier: Fragment, most = MOST_COMPARED): Fragment => ({
  fragment: `least(asked.last_from, (
    select least(
      min(e.pays_at) filter (where ${payoutOf(`${isOpen} or coalesce(${sentAt} >= asked.last_from, false)`)}),
      case when count(*) = ${most} then max(e.pays_at) end)
    from ${earlier.fragment} e
  ))`,
})
const nextOpenFrom = openFrom(beforeLast)
const firstOpenFrom = openFrom(
  same('e.pays_at < asked.last_from', 'e.pays_at, e.batch', MOST_LOOKED_THROUGH),
  MOST_LOOKED_THROUGH,
)

const batchIdOf = (row: string): Fragment => ({
  fragment: `(select batch_id from payouts p where p.merchant_id = asked.merchant_id and p.payout_id = ${row}.payout_id)`,
})

const isPaid: Fragment = { fragment: payoutOf(countsAsPaid) }

/** For a row `e` of beneficiary_payments: it may still be paid, and came in another batch or in another file of the same one. */
const isOpenElsewhere: Fragment = {
  fragment: payoutOf(`${isOpen} and (p.batch_id is distinct from asked.batch or asked.file is distinct from (
    select file from payout_commands c where c.merchant_id = p.merchant_id and c.payout_id = p.payout_id))`),
}

/** The last, or the first, MOST_COMPARED payments to the beneficiary with this id, paid or not. */
const toSameId = (order: 'desc' | 'asc'): Fragment => ({
  fragment: `(
    select e.payout_id, e.beneficiary_hash, e.pays_at from beneficiary_payments e
    where e.merchant_id = asked.merchant_id and e.beneficiary_id_hash = asked.beneficiary_id_hash
    order by e.pays_at ${order} limit ${MOST_COMPARED}
  )`,
})

/**
 * Stores the data that later payouts are compared with, and compares these payouts with the data stored before. Returns a row
 * for each reason to hold a payout, none for most. Searches by key alone. It finds duplicates by their time or, past a large
 * batch to one beneficiary, by their batch; if neither search comes to an end, it names the first payment found. Within a batch,
 * at any time, a payment from another file or from the same row is a duplicate. The first MOST_COMPARED of a batch are enough: a
 * later one from another file than the very first one's finds that one. Bank details have changed if a payment to the same id from
 * elsewhere may still go to others, or if the last paid one went to others. If none of the last payments to an id is known to be
 * paid, it compares with the last one to other bank details.
 */
export const keepAndCompare = sql<{ payments: readonly Payment[] }, Hold>`
  with given as materialized (
    select merchant_id, payout_id, batch, amount,
      to_timestamp(pays_at / 1000) as pays_at, payee_hash, beneficiary_hash, beneficiary_id_hash,
      to_timestamp(period_from / 1000) as period_from, to_timestamp(period_to / 1000) as period_to,
      to_timestamp(asked_from / 1000) as asked_from, to_timestamp(asked_to / 1000) as asked_to,
      to_timestamp(asked_at / 1000) as asked_at, to_timestamp(last_from / 1000) as last_from, changes_wanted, file, row_number
    from ${{
      rows: 'payments',
      columns: {
        ...{ merchantId: 'text', payoutId: 'text', batch: 'text', amount: 'bigint', paysAt: 'float8' },
        ...{ payeeHash: 'bytea', beneficiaryHash: 'bytea', beneficiaryIdHash: 'bytea' },
        ...{ periodFrom: 'float8', periodTo: 'float8', askedFrom: 'float8', askedTo: 'float8' },
        ...{ askedAt: 'float8', lastFrom: 'float8', changesWanted: 'bool', file: 'bigint', rowNumber: 'int' },
      },
    }} p
  ), asked as materialized (
    select *, case when asked_from < last_from then '-infinity' else open_from end as look_from
    from (
      select *, least(last_from, coalesce(
        (select e.open_from from payments e
         where e.merchant_id = asked.merchant_id and e.payee_hash = asked.payee_hash and e.amount = asked.amount
           and e.pays_at < asked.period_to
         order by e.pays_at desc limit 1),
        ${firstOpenFrom})) as open_from
      from given asked
    ) asked
  ), kept as (
    insert into payments (merchant_id, payee_hash, amount, batch, pays_at, payout_id, open_from)
    select merchant_id, payee_hash, amount, batch, pays_at, payout_id, ${nextOpenFrom} from asked
    union all
    select merchant_id, payee_hash, amount, batch, asked_at, payout_id, null from asked where asked_at is not null
  ), named as (
    insert into beneficiary_payments (merchant_id, beneficiary_id_hash, pays_at, payout_id, beneficiary_hash)
    select merchant_id, beneficiary_id_hash, pays_at, payout_id, beneficiary_hash
    from asked where beneficiary_id_hash is not null
  )
  select asked.merchant_id, asked.payout_id, found.reason, found.earlier_payout_id, found.earlier_batch_id,
    null as earlier_merchant_id, found.since
  from asked
  cross join lateral (
    (
      with ${searches}
      select 'duplicate' as reason, e.payout_id as earlier_payout_id, ${batchIdOf('e')} as earlier_batch_id,
        e.pays_at as since
      from (
        (select 0 as way, e.payout_id, e.batch, e.pays_at from in_batch e where asked_again and ${isAlive} limit 1)
        union all
        (select 1, e.* from up_to_period e where ${repeated} limit 1)
        union all
        (select 2, e.* from by_batch e where ${repeated} limit 1)
        union all
        (select 3, e.* from reopened e where ${repeated} limit 1)
        union all
        (select 4, e.* from by_batch e where (select count(*) from by_batch) >= ${mostCompared} limit 1)
        union all
        (select 5, e.* from reopened e where (select count(*) from reopened) = ${mostCompared} limit 1)
        union all
        (select 6, e.payout_id, e.batch, e.pays_at from in_batch e
         where asked.file is not null and (select count(*) from in_batch) = ${mostCompared} limit 1)
      ) e
      order by e.way limit 1
    )
    union all
    select 'beneficiary-changed', last.payout_id,
      ${batchIdOf('last')},
      coalesce(
        (select min(e.pays_at) from ${toSameId('asc')} e
         where e.beneficiary_hash = last.beneficiary_hash and ${isPaid}),
        last.pays_at)
    from (
      with known as materialized (select * from ${toSameId('desc')} e where asked.changes_wanted)
      select * from (
        (select 1 as way, e.* from known e
         where e.beneficiary_hash <> asked.beneficiary_hash and ${isOpenElsewhere} limit 1)
        union all
        (select 2, e.* from known e where ${isPaid} limit 1)
        union all
        (select 3, e.* from known e
         where e.beneficiary_hash <> asked.beneficiary_hash and (select count(*) from known) = ${mostCompared}
         limit 1)
      ) e
      order by way limit 1
    ) last
    where last.beneficiary_hash <> asked.beneficiary_hash
  ) found`

/** A file, as payout_commands.file has it, and the batch that it came under. */
export type BatchFile = { file: bigint; merchantId: string; batchId: string }
export type FileOwner = BatchFile & { since: Instant }

/**
 * Files, each once. One that another transaction is about to claim waits for its end; in one order, so that none waits for a
 * transaction that waits for it.
 */
export const claimFiles = sql<{ files: readonly BatchFile[] }>`
  insert into files (file, merchant_id, batch_id)
  select file, merchant_id, batch_id
  from ${{ rows: 'files', columns: { file: 'bigint', merchantId: 'text', batchId: 'text' } }} f
  order by file on conflict do nothing`

export const ownersOf = sql<{ files: readonly Pick<BatchFile, 'file'>[] }, FileOwner>`
  select f.file, f.merchant_id, f.batch_id, f.since
  from ${{ rows: 'files', columns: { file: 'bigint' } }} asked
  cross join lateral (select * from files where files.file = asked.file limit 1) f`

/** Payouts that this transaction inserted, each once. */
export const hold = sql<{ held: readonly Pick<Hold, 'merchantId' | 'payoutId' | 'reason'>[] }>`
  update payouts p set state = 'held', reason = held.reason, ready = false, due_at = p.deadline
  from (
    select given.reason,
      (select ctid from payouts
       where payouts.merchant_id = given.merchant_id and payouts.payout_id = given.payout_id) as place
    from ${{ rows: 'held', columns: { merchantId: 'text', payoutId: 'text', reason: 'text' } }} given
  ) held
  where p.ctid = held.place`

export const keepHolds = sql<{ holds: readonly (Hold & { paysAt: Instant })[] }>`
  insert into holds (merchant_id, payout_id, reason, earlier_payout_id, earlier_batch_id, earlier_merchant_id, pays_at, since)
  select merchant_id, payout_id, reason, earlier_payout_id, earlier_batch_id, earlier_merchant_id,
    to_timestamp(pays_at / 1000), to_timestamp(since / 1000)
  from ${{
    rows: 'holds',
    columns: {
      ...{ merchantId: 'text', payoutId: 'text', reason: 'text', earlierPayoutId: 'text' },
      ...{ earlierBatchId: 'text', earlierMerchantId: 'text', paysAt: 'float8', since: 'float8' },
    },
  }} h`
