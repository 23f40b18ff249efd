import type { HoldReason } from '../../../domain/commands/holds.ts'
import type { EvidenceSource } from '../../../domain/evidence.ts'
import type { PayoutKey } from '../../../domain/identifiers.ts'
import type { Instant } from '../../../domain/instant.ts'
import type { PublishedMessage } from '../../../domain/recovery/published-story.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** Keeps each message once, however often it was published. */
export const keepPublished = sql<{ messages: readonly (PayoutKey & PublishedMessage)[] }>`
  insert into published_messages (merchant_id, payout_id, version, is_result, from_state, state, reason, evidence, order_no,
                                  amount, currency, agentpay_order_id, fee, utr, at)
  select merchant_id, payout_id, version, is_result, from_state, state, reason, evidence, order_no,
         amount, currency, agentpay_order_id, fee, utr, to_timestamp(at / 1000)
  from ${{
    rows: 'messages',
    columns: {
      ...{
        merchantId: 'text',
        payoutId: 'text',
        version: 'int',
        isResult: 'bool',
        fromState: 'text',
        state: 'text',
      },
      ...{ reason: 'text', evidence: 'text', orderNo: 'text', amount: 'bigint', currency: 'text' },
      ...{ agentpayOrderId: 'text', fee: 'bigint', utr: 'text', at: 'float8' },
    },
    ordered: true,
  }} m
  order by n
  on conflict do nothing`

/** Returns and deletes the kept messages about these payouts. `lacked`: only about those that the ledger lacks. */
export const takePublished = sql<
  { payouts: readonly PayoutKey[]; lacked: boolean },
  PublishedMessage & PayoutKey
>`
  delete from published_messages m
  using (
    select kept.place
    from ${{ rows: 'payouts', columns: { merchantId: 'text', payoutId: 'text' } }} wanted
    cross join lateral (
      select ctid as place from published_messages
      where published_messages.merchant_id = wanted.merchant_id and published_messages.payout_id = wanted.payout_id
      offset 0
    ) kept
    where not ${'lacked'} or (
      select true from payouts p where p.merchant_id = wanted.merchant_id and p.payout_id = wanted.payout_id limit 1
    ) is null
  ) taken
  where m.ctid = taken.place
  returning m.merchant_id, m.payout_id, m.version, m.is_result, m.from_state, m.state, m.reason, m.evidence, m.order_no,
    m.amount, m.currency, m.agentpay_order_id, m.fee, m.utr, m.at`

/** Records attempts that the ledger had lost. `claimedAt`: null if it is not known. */
export const recordAttempts = sql<{
  lost: readonly (PayoutKey & { orderNo: string | null; attempt: number; claimedAt: Instant | null })[]
}>`
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until, claimed_at)
  select merchant_id, payout_id, attempt, order_no, 'recovery', now(), coalesce(to_timestamp(claimed_at / 1000), now())
  from ${{
    rows: 'lost',
    columns: { merchantId: 'text', payoutId: 'text', orderNo: 'text', attempt: 'int', claimedAt: 'float8' },
  }} lost`

/**
 * Records that a ledger that was lost held payouts for an operator since `at`. What it compared them with is unknown. Their
 * schedule stays.
 */
export const keepHeldBefore = sql<{
  held: readonly (PayoutKey & { reason: HoldReason; at: Instant })[]
}>`
  insert into holds (merchant_id, payout_id, reason, pays_at, since)
  select held.merchant_id, held.payout_id, held.reason, greatest(c.not_before, now()), to_timestamp(held.at / 1000)
  from ${{
    rows: 'held',
    columns: { merchantId: 'text', payoutId: 'text', reason: 'text', at: 'float8' },
  }} held
  cross join lateral (
    select not_before from payout_commands
    where payout_commands.merchant_id = held.merchant_id and payout_commands.payout_id = held.payout_id
    offset 0
  ) c
  on conflict do nothing`

/** Stores when payouts became paid whose end was read back. They are locked, so each row keeps its ctid. */
export const keepPaidAt = sql<{ paid: readonly (PayoutKey & { at: Instant })[] }>`
  update payouts p set paid_at = to_timestamp(paid.at / 1000)
  from (
    select given.at,
      (select ctid from payouts
       where payouts.merchant_id = given.merchant_id and payouts.payout_id = given.payout_id) as place
    from ${{ rows: 'paid', columns: { merchantId: 'text', payoutId: 'text', at: 'float8' } }} given
  ) paid
  where p.ctid = paid.place`

/**
 * Returns the evidence of an end whose result a recovery has still to publish, and when it ended; no row if there is none.
 * Returns it only once, so the caller publishes the result.
 */
export const takeUntold = sql<
  { merchantId: string; payoutId: string },
  { source: EvidenceSource; endedAt: Instant | null }
>`
  update recovered_payouts r set untold = null
  from (
    select untold, untold_at from recovered_payouts
    where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'} and untold is not null
    for update
  ) before
  where r.merchant_id = ${'merchantId'} and r.payout_id = ${'payoutId'}
  returning before.untold as source, before.untold_at as ended_at`
