import { Gauge } from 'prom-client'
import { HOLD_REASONS } from '../domain/commands/holds.ts'
import { SHARDS } from '../messages/messages.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type LedgerGauges, ledgerGauges } from './sql/ledger-gauges.ts'

/** The count stops here and then means "at least so many": it is for an alert, not for bookkeeping. */
const COUNT_UP_TO = 10_000

/**
 * Gauges about the ledger, read by one statement per scrape. Every process publishes the same values, so a dashboard takes the
 * maximum over processes. While the database does not answer, they are absent and `payoutd_ledger_readable` is 0.
 */
export function ledgerMetrics(metrics: Metrics, db: Database): void {
  let reading: Promise<void> | undefined
  // A scrape collects all gauges before it awaits any of them, so they share one reading.
  const collect = (): Promise<void> => (reading ??= read().finally(() => (reading = undefined)))
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[]): Gauge<Label> =>
    new Gauge({ name: `payoutd_${name}`, help, labelNames, registers: [metrics.registry], collect })
  const perMerchant = (name: string, help: string) => gauge(name, help, ['merchant'])

  const readable = gauge('ledger_readable', '1 while the ledger can be read, 0 otherwise', [])
  const outbox = gauge(
    'outbox_messages',
    `Messages that wait for the relay, counted up to ${COUNT_UP_TO}`,
    [],
  )
  const refused = gauge(
    'outbox_refused',
    `Messages that Kafka refused and that are still unpublished, counted up to ${COUNT_UP_TO}`,
    [],
  )
  const oldest = gauge('outbox_oldest_seconds', 'How long the oldest message has waited for the relay', [])
  const snapshots = gauge(
    'snapshots_oldest_seconds',
    'Age of the oldest snapshot of the database, which slows dispatch of every merchant; absent if ' +
      'the role may not see it (pg_read_all_stats)',
    [],
  )
  const paused = perMerchant('merchant_paused', '1 while an operator has paused the merchant')
  const recovering = perMerchant(
    'merchant_recovering',
    '1 while the merchant is fenced, until payoutd recover ends',
  )
  const circuitOpen = perMerchant(
    'merchant_circuit_open',
    '1 while payoutd sends nothing, or in vain, because the gateway accepts no payout',
  )
  const balance = perMerchant('merchant_balance_paise', 'Available balance, as the gateway last reported it')
  const asked = perMerchant('merchant_balance_timestamp_seconds', 'When payoutd last queried the balance')
  const short = perMerchant(
    'merchant_balance_short_paise',
    'What the balance lacks to cover the next payout; 0 if it covers it',
  )
  const waiting = perMerchant(
    'merchant_balance_short_payouts',
    `Payouts that wait because the balance does not cover them, counted up to ${COUNT_UP_TO}`,
  )
  const payouts = gauge(
    'payouts',
    `Payouts in the states submitting, unknown and review; those in review counted up to ${COUNT_UP_TO}`,
    ['merchant', 'state'],
  )
  const held = gauge(
    'payouts_held',
    `Payouts held until a person releases them, counted up to ${COUNT_UP_TO} of a merchant`,
    ['merchant', 'reason'],
  )
  const anomalies = gauge(
    'anomalies_unacknowledged',
    `Anomalies that nobody has acknowledged, counted up to ${COUNT_UP_TO} of a merchant`,
    ['merchant', 'kind'],
  )
  const payins = gauge('payins', `Payins that have not ended, counted up to ${COUNT_UP_TO} in each state`, [
    'merchant',
    'state',
  ])
  const oldestPayin = gauge('payins_oldest_seconds', 'Age of the oldest payin that has not ended', [
    'merchant',
    'state',
  ])

  const late = perMerchant(
    'payouts_overdue_seconds',
    'For how long the first payout has waited that is due for a query, or by its lease, schedule or deadline; absent below two minutes',
  )

  /** Merchants come and go, and an unknown value must not look like a zero. */
  function forget(): void {
    for (const each of [
      paused,
      recovering,
      circuitOpen,
      balance,
      asked,
      short,
      waiting,
      payouts,
      held,
      anomalies,
      payins,
      oldestPayin,
      late,
    ])
      each.reset()
    for (const each of [outbox, refused, oldest, snapshots]) each.remove()
  }

  function report(row: LedgerGauges): void {
    outbox.set(row.outboxRows)
    refused.set(row.outboxRefused)
    oldest.set(row.outboxOldestSeconds)
    if (row.snapshotsOldestSeconds !== null) snapshots.set(row.snapshotsOldestSeconds)
    if (row.merchantId === null) return
    const merchant = row.merchantId
    paused.set({ merchant }, Number(row.paused))
    recovering.set({ merchant }, Number(row.recovering))
    circuitOpen.set({ merchant }, Number(row.circuitOpen))
    if (row.available !== null) balance.set({ merchant }, Number(row.available))
    if (row.snapshotAt !== null) asked.set({ merchant }, row.snapshotAt / 1000)
    short.set({ merchant }, Number(row.lacking ?? 0))
    waiting.set({ merchant }, row.waiting ?? 0)
    if (row.overdueSeconds !== null) late.set({ merchant }, row.overdueSeconds)
    payouts.set({ merchant, state: 'submitting' }, row.submitting)
    payouts.set({ merchant, state: 'unknown' }, row.unknown)
    payouts.set({ merchant, state: 'review' }, row.review)
    for (const reason of HOLD_REASONS) held.set({ merchant, reason }, row.held?.[reason] ?? 0)
    for (const [kind, count] of Object.entries(row.anomalies ?? {})) anomalies.set({ merchant, kind }, count)
    for (const { state, count, oldestSeconds } of row.payins) {
      payins.set({ merchant, state }, count)
      oldestPayin.set({ merchant, state }, oldestSeconds)
    }
  }

  async function read(): Promise<void> {
    let rows: LedgerGauges[] | null
    try {
      rows = await db.run(ledgerGauges, { shards: SHARDS, countUpTo: COUNT_UP_TO })
    } catch {
      // Operators need the other metrics most while the database is away.
      rows = null
    }
    forget()
    rows?.forEach(report)
    readable.set(Number(rows !== null))
  }
}
