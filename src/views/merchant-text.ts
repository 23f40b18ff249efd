import { formatRupees } from '../domain/money.ts'
import { formatAge, formatTime } from '../domain/times.ts'
import type { Amounts, MerchantOverview, MerchantTraffic, OpenCircuit } from '../queries/merchant-overview.ts'
import type { Pause, Recovering } from '../queries/sql/merchants.ts'
import { accountText } from './gateway-settings-text.ts'

const HEADINGS = [
  'MERCHANT',
  'STATE',
  'BALANCE',
  'AGE',
  'QUEUED',
  'SHORT OF',
  'HELD',
  'IN FLIGHT',
  'UNKNOWN',
  'PROCESSING',
  'REVIEW',
  'GATEWAY',
]

/** A table with a line for each merchant, and below it what needs a sentence. */
export function merchantsText(merchants: readonly MerchantOverview[]): string {
  const rows = merchants.map(row)
  const widths = HEADINGS.map((heading, i) =>
    Math.max(heading.length, ...rows.map((cells) => cells[i]?.length ?? 0)),
  )
  const table = [HEADINGS, ...rows].map((cells) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const notes = merchants.flatMap(sentences)
  return [...table, ...(notes.length > 0 ? ['', ...notes] : [])].join('\n')
}

function row(merchant: MerchantOverview): string[] {
  const { merchantId, balance, traffic, inReview, shortfall, account } = merchant
  return [
    merchantId,
    stateOf(merchant),
    balance ? formatRupees(balance.available) : 'not known',
    balance ? formatAge(balance.ageMs) : '',
    formatAmounts(traffic.queued),
    shortfall === null ? 'not known' : shortfall === 0n ? '-' : formatRupees(shortfall),
    String(traffic.held.count),
    String(traffic.submitting.count),
    String(traffic.unknown.count),
    String(traffic.processing.count),
    String(inReview),
    account ? `mchId ${account.mchId} at ${new URL(account.baseUrl).host}` : 'not known',
  ]
}

function stateOf({ recovering, paused, circuit, canary }: MerchantOverview): string {
  if (recovering) return 'recovering'
  if (paused) return 'paused'
  if (circuit) return circuit.until === null ? 'not accepted' : 'circuit open'
  return canary ? `canary ${canary.good}/${canary.of}` : 'sending'
}

function sentences(merchant: MerchantOverview): string[] {
  const { merchantId, recovering, paused, circuit, learnedRate, shortfall, openElsewhere, traffic } = merchant
  const notes = openElsewhere.map(
    ({ accountId, account, count }) =>
      `${merchantId} has ${count} open at ${account ? accountText(account) : `gateway account ${accountId}`}`,
  )
  if (recovering) notes.push(recoveryText(merchantId, recovering))
  if (paused) notes.push(pauseText(merchantId, paused))
  if (circuit) notes.push(circuitText(merchantId, circuit))
  if (learnedRate !== null)
    notes.push(
      `${merchantId} sends about ${Math.round(learnedRate)} payouts a second, because the gateway answers "later" to more: set RATE_PER_SECOND to what it allows`,
    )
  if (shortfall !== null && shortfall > 0n) {
    notes.push(
      `${merchantId} needs ${formatRupees(shortfall)} more to send everything queued${
        traffic.unknown.count > 0
          ? `, less what its unknown payouts (${formatAmounts(traffic.unknown)}) turn out not to need`
          : ''
      }: add it to the balance`,
    )
  }
  return notes
}

/** By whom, since when and why. */
export const pauseText = (merchantId: string, { pausedBy, pausedAt, pausedReason }: Pause): string =>
  `${merchantId} was paused by ${pausedBy} at ${formatTime(pausedAt)}: ${pausedReason}`

/** By whom, since when and why. */
export const recoveryText = (
  merchantId: string,
  { recoveringBy, recoveringSince, recoveringReason }: Recovering,
): string =>
  `${merchantId} is fenced until payoutd recover ends, by ${recoveringBy} since ${formatTime(recoveringSince)}: ${recoveringReason}`

/** Until when and why. */
export const circuitText = (merchantId: string, { until, reason }: OpenCircuit): string =>
  `${
    until === null
      ? `${merchantId}'s gateway has accepted none of the latest payouts`
      : `${merchantId}'s circuit is open until ${formatTime(until)}`
  }: ${reason ?? ''}${
    reason?.endsWith(' lease-ended')
      ? ", too late to send: the process was stalled, or the dialect's leaseMs is too short"
      : ''
  }`

/** `12 (₹3,456.00)` */
const formatAmounts = ({ count, amount }: Amounts): string =>
  count === 0 ? '0' : `${count} (${formatRupees(amount)})`

/** What is queued and in flight, in one sentence. */
export const trafficText = ({ queued, submitting }: MerchantTraffic): string =>
  `queued now: ${formatAmounts(queued)}, in flight now: ${formatAmounts(submitting)}`
