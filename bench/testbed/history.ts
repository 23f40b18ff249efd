import pg from 'pg'

const TABLES = ['payouts', 'payout_commands', 'attempts', 'payments', 'history'] as const

/** What has to differ from copy to copy, by column; `n` numbers the copies. */
const DIFFERENT: Record<string, string> = {
  payout_id: "payout_id || '-' || n",
  order_no: 'left(upper(md5(order_no || n)), 30)',
  agentpay_order_id: 'agentpay_order_id || n',
  utr: 'utr || n',
  payee_hash: 'sha256(payee_hash || int8send(n))',
}

/** How many rows of history one statement adds, at most. */
const AT_ONCE = 400_000

/**
 * Adds so many rows of history, in the months of a year, and the payouts that they belong to: copies of the ended payouts that the
 * ledger has, under other names. Their bank details do not open, which only sending would need.
 */
export async function addYear(databaseUrl: string, rows: number): Promise<void> {
  const client = await connected(databaseUrl)
  for (let month = 1; month < 12; month++) await client.query(partitionOf(month))
  for (const table of TABLES) await client.query(`create temp table original_${table} as table ${table}`)
  const [stored] = (await client.query<{ count: number }>('select count(*)::int from original_history')).rows
  const each = stored?.count ?? 0
  const copies = Math.floor(rows / each)
  const step = Math.max(1, Math.floor(AT_ONCE / each))
  for (let from = 1; from <= copies; from += step) {
    const to = Math.min(copies, from + step - 1)
    for (const table of TABLES) await client.query(await copyOf(client, table), [from, to])
  }
  await client.end()
}

/** Has the planner know the tables as they are now. */
export async function analyze(databaseUrl: string): Promise<void> {
  const client = await connected(databaseUrl)
  await client.query('analyze')
  await client.end()
}

/** Without the time limits of payoutd's own connections. */
async function connected(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  return client
}

async function copyOf(client: pg.Client, table: (typeof TABLES)[number]): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''`,
    [table],
  )
  const names = rows.map(({ name }) => name)
  const values = names.map((name) =>
    table === 'history' && name === 'at' ? "at - n % 12 * interval '30 days'" : (DIFFERENT[name] ?? name),
  )
  return `insert into ${table} (${names.join(', ')})
    select ${values.join(', ')} from original_${table}, generate_series($1::bigint, $2::bigint) n`
}

/** So many months ago, as `keep_history` would have made it. */
const partitionOf = (month: number): string => `
  do $$ declare begins timestamptz := date_trunc('month', now(), 'UTC') - ${month} * interval '1 month'; begin
    execute format('create table if not exists %I partition of history for values from (%L) to (%L)',
      'history_' || to_char(begins at time zone 'UTC', 'YYYY_MM'), begins, begins + interval '1 month');
  end $$`
