import type { PayoutKey } from '../../../domain/identifiers.ts'
import type { Instant } from '../../../domain/instant.ts'
import type { Payout } from '../../../domain/payout/payout.ts'

import { payoutColumns } from '../../../ledger/sql/columns.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

export type Candidate = Payout & { sealed: Buffer; fingerprint: Buffer }

/**
 * The next payouts of one merchant, without `allBut`, by priority, then age. None before its time, none that a waiting command
 * cancels, and none of which the gateway showed an order, whatever made it ready. The cost does not grow with the backlog.
 * `neverSent`: only those.
 */
export const lockCandidates = sql<
  { merchantId: string; limit: number; allBut: string[]; neverSent: boolean },
  Candidate
>`
  select ${payoutColumns}, command.sealed, command.fingerprint
  from payouts p
  cross join lateral (
    select sealed, fingerprint, not_before from payout_commands c
    where c.merchant_id = p.merchant_id and c.payout_id = p.payout_id
    offset 0
  ) command
  where p.merchant_id = ${'merchantId'} and p.ready and p.cancel_request is null and not p.order_shown and p.deadline > now()
    and p.payout_id <> all(${'allBut'}::text[]) and (p.attempt = 0 or not ${'neverSent'}::bool) and coalesce(command.not_before <= now(), true)
    and (select true from waiting_commands w where w.merchant_id = p.merchant_id and w.cancels = p.payout_id limit 1) is null
  order by p.priority desc, p.seq
  limit ${'limit'}
  for update of p skip locked`

export const putAmountsBack = sql<{
  merchantId: string
  payouts: readonly Pick<Payout, 'payoutId' | 'amount'>[]
}>`
  update payouts p set amount = sealed.amount
  from ${{ rows: 'payouts', columns: { payoutId: 'text', amount: 'bigint' } }} sealed
  where p.merchant_id = ${'merchantId'} and p.payout_id = sealed.payout_id`

export const openAttempts = sql<{
  merchantId: string
  attempts: readonly (Pick<Payout, 'payoutId' | 'attempt' | 'orderNo'> & { claimedAt: Instant })[]
  owner: string
  settingsHash: string
  leaseUntil: number
}>`
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, settings_hash, lease_until, claimed_at)
  select ${'merchantId'}, payout_id, attempt, order_no, ${'owner'}, ${'settingsHash'},
         to_timestamp(${'leaseUntil'}::float8 / 1000), to_timestamp(claimed_at / 1000)
  from ${{
    rows: 'attempts',
    columns: { payoutId: 'text', attempt: 'int', orderNo: 'text', claimedAt: 'float8' },
  }} a`

/**
 * Who made which attempts, and when their leases end. For an attempt that a recovery put back, that is unknown (`isLost`). Unknown
 * attempts return no row.
 */
export const attemptsMade = sql<
  { answered: readonly (PayoutKey & { attempt: number })[] },
  PayoutKey & {
    attempt: number
    owner: string
    leaseUntil: Instant
    accountId: string | null
    isLost: boolean
  }
>`
  select made.merchant_id, made.payout_id, made.attempt, made.owner, made.lease_until, made.owner = 'recovery' as is_lost,
    (select account_id from gateway_settings s
     where s.merchant_id = made.merchant_id and s.settings_hash = made.settings_hash) as account_id
  from ${{ rows: 'answered', columns: { merchantId: 'text', payoutId: 'text', attempt: 'int' } }} answered
  cross join lateral (
    select * from attempts a
    where a.merchant_id = answered.merchant_id and a.payout_id = answered.payout_id and a.attempt = answered.attempt
    offset 0
  ) made`
