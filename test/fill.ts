import { withSession } from '../src/platform/postgres/postgres.ts'

const AT_ONCE = 500_000

/**
 * Puts `count` payouts into an empty ledger. Nine of ten are acme's and the
 * others bolt's; one in forty of them is open. 10 million take about ten minutes on two quiet cores, and 12 GB.
 * Their payoutIds are p000000000 and so on; history stays empty.
 */
export async function fill(url: string, count: number): Promise<void> {
  await withSession(url, async (session) => {
    await session.query(`set synchronous_commit = off`)
    await session.query(
      `insert into merchants (merchant_id, settings_hash, fee_estimate) values ('acme', 'h', 500), ('bolt', 'h', 500)`,
    )
    for (let first = 0; first < count; first += AT_ONCE) {
      await session.query(FILL, [first, Math.min(first + AT_ONCE, count) - 1])
    }
    await session.query('vacuum analyze')
  })
}

const FILL = `
  with numbered as (
    select n, case when n % 10 = 9 then 'bolt' else 'acme' end as merchant_id,
      'p' || lpad(n::text, 9, '0') as payout_id, 'O' || lpad(n::text, 24, '0') as order_no,
      case n % 40
        when 0 then (array['queued', 'processing', 'unknown', 'review'])[1 + (n / 40) % 4]
        when 1 then 'failed' else 'paid'
      end as state
    from generate_series($1::int, $2::int) n
  ), commands as (
    insert into payout_commands (merchant_id, payout_id, batch_id, row_number, fingerprint, sealed)
    select merchant_id, payout_id, 'b' || n / 5000, 1, decode(md5(payout_id), 'hex'),
      decode('01' || md5(payout_id) || md5(payout_id), 'hex')
    from numbered
  ), sent as (
    insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until)
    select merchant_id, payout_id, 1, order_no, 'me', now() from numbered where state <> 'queued'
  )
  insert into payouts (merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, version, attempt,
                       agentpay_order_id, fee, utr, deadline, unknown_since, ready, due_at, accepted_at, updated_at)
  select merchant_id, payout_id, 'b' || n / 5000, order_no, 10000 + n % 1000, 'INR', 5, state,
    case state when 'queued' then 1 else 4 end, case state when 'queued' then 0 else 1 end,
    case when state <> 'queued' then 'AP' || n end, case state when 'paid' then 500 end,
    case state when 'paid' then 'UTR' || n end, now() + interval '3 days',
    case state when 'unknown' then now() end, state = 'queued',
    case when state in ('queued', 'processing', 'unknown') then now() + interval '2 days' end,
    now() - interval '1 year' + n * interval '3 s', now() - interval '1 year' + n * interval '3 s'
  from numbered`
