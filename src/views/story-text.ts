import { awaitsRelease } from '../domain/commands/holds.ts'
import type { Exchange } from '../domain/evidence.ts'
import { formatRupees } from '../domain/money.ts'
import { lastCode } from '../domain/payout/send-again.ts'
import { isEnd } from '../domain/payout/states.ts'
import { wasNeverSent } from '../domain/payout/transition.ts'
import { LATER } from '../domain/payout/unconfirmed-answer.ts'
import { formatTime } from '../domain/times.ts'
import { areThere, NO_OTHER_PAYMENTS, type OtherPayments } from '../queries/other-payments.ts'
import type { PayoutStory } from '../queries/payout-story.ts'
import { amountAndBeneficiary, placeInBatch } from '../queries/request.ts'
import type { Acknowledgement, Repeats } from '../queries/sql/anomalies.ts'
import type { Attempt, HistoryEntry, Sighting } from '../queries/sql/payouts/story.ts'
import { accountText } from './gateway-settings-text.ts'
import { holdText } from './hold-text.ts'
import { inFull } from './list-text.ts'
import { theseText } from './other-payments-text.ts'
import { resendCommand } from './resend-command.ts'
import { shortageText } from './shortage-text.ts'

const NOT_CERTAIN = 'not confirmed yet'

/** The story of a payout for a person to read, in lines; `others`: what else pays the same by now. */
export function storyText(story: PayoutStory, others: OtherPayments = NO_OTHER_PAYMENTS): string {
  const { payout, beneficiary, faults, holds, attempts, history, anomalies, reversal, shortage } = story
  const { merchantId, payoutId, state, reason, fee, dueAt, deadline } = payout
  const facts: [string, string | null][] = [
    ['requested', amountAndBeneficiary(story)],
    ['remark', beneficiary?.remark ?? null],
    ['batch', placeInBatch(story)],
    ['accepted', formatTime(payout.acceptedAt)],
    ['not before', payout.notBefore === null ? null : formatTime(payout.notBefore)],
    ['deadline', `${formatTime(deadline)}${dueAt === deadline ? `, when ${atDeadline(story)}` : ''}`],
    ['state', `${inFull(state, reason)}, version ${payout.version}`],
    ['refused', payout.refusal && `${payout.refusal} (${NOT_CERTAIN})`],
    ['told "later"', reason === LATER ? `${lastCode(payout)} (${NOT_CERTAIN})` : null],
    ['to be cancelled', isEnd(state) ? null : payout.cancelRequest],
    [
      'send again with',
      state === 'review' ? `${resendCommand(payout)} [--confirmed-absent-by …] --by … --reason …` : null,
    ],
    ['came again', changedText(story)],
    [
      'returned',
      reversal &&
        `as ${reversal.reversedBy} confirmed at ${formatTime(reversal.at)}: ${reversal.reason} (anomaly ${reversal.anomalyId})`,
    ],
    ['waits for', shortage && `balance: ${shortageText(shortage)}`],
    ['next look', dueAt === null || dueAt === deadline ? null : formatTime(dueAt)],
    ['order number', payout.orderNo],
    ['agentpayOrderId', payout.agentpayOrderId],
    ['UTR', payout.utr],
    ['fee', fee === null ? null : formatRupees(fee)],
  ]
  return [
    `payout ${payoutId} of ${merchantId}`,
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(16)}${value}`])),
    ...section('refused because', faults, ({ field, message, found }) => [`${field} ${message} (${found})`]),
    ...section(awaitsRelease(payout) ? 'held because' : 'was held because', holds, (hold) => [
      holdText(hold),
    ]),
    ...section(
      'other payouts of the same amount to the same beneficiary',
      areThere(others) ? [others] : [],
      (payouts) => [theseText(payouts)],
    ),
    ...section('attempts', attempts, (sent) => [
      `${sent.attempt}  order ${sent.orderNo}, ${claimText(sent)}`,
      `${INDENT}${sent.accountId === null ? 'gateway account not recorded' : `to ${accountText(sent)}`}`,
    ]),
    ...section('history', history, entryLines),
    ...section('anomalies', anomalies, anomalyLines),
  ].join('\n')
}

const claimText = ({ isPutBack, claimedAt, owner, leaseUntil }: Attempt): string =>
  isPutBack
    ? `lost with the ledger, restored by payoutd recover ${formatTime(leaseUntil)}`
    : `claimed ${formatTime(claimedAt)} by process ${owner}, lease until ${formatTime(leaseUntil)}`

/** A command, or a row of a file, that arrived again under its id with other content; null: none did. */
function changedText({ anomalies }: PayoutStory): string | null {
  const times = anomalies
    .filter(({ kind }) => kind === 'same-id-other-content')
    .reduce((all, each) => all + each.times, 0)
  if (times === 0) return null
  return `${times === 1 ? '' : `${times} times, `}with other content, which payoutd does not pay: see anomalies below`
}

/** What happens to a payout at its deadline, as `onTimer` decides. */
function atDeadline({ payout, isFenced }: PayoutStory): string {
  const { state } = payout
  if (!wasNeverSent(payout) || (state !== 'held' && state !== 'queued')) return 'a person decides about it'
  return isFenced
    ? 'it keeps waiting for payoutd recover, because it may have been sent from a ledger that was lost'
    : 'payoutd cancels it'
}

/** Lines under a title; none where there are no items. */
export function section<Item>(
  title: string,
  items: readonly Item[],
  lines: (item: Item) => string[],
): string[] {
  return items.length === 0 ? [] : ['', title, ...items.flatMap(lines).map((line) => `  ${line}`)]
}

/** One entry of a history, with the exchange on the wire. */
export function entryLines({
  at,
  version,
  fromState,
  toState,
  reason,
  source,
  exchange,
  times,
  lastAt,
}: HistoryEntry): string[] {
  const moved = version !== null
  const what = moved ? `${fromState ?? '(new)'} → ${inFull(toState, reason)}` : `stays ${toState}`
  return [
    `${formatTime(at)}  ${moved ? `v${version}` : '  '}  ${what}  by ${source}${repeatsText({ times, lastAt })}`,
    ...exchangeLines(source, exchange),
  ]
}

export function anomalyLines(sighting: Omit<Sighting, 'orderNo'>): string[] {
  const { anomalyId, at, kind, detail, source, exchange } = sighting
  const acknowledged = acknowledgedText(sighting)
  return [
    `${formatTime(at)}  ${kind}: ${detail}  by ${source}${repeatsText(sighting)}  (${anomalyId})`,
    ...exchangeLines(source, exchange),
    ...(acknowledged === null ? [] : [INDENT + acknowledged]),
  ]
}

/** `, 12 times, at last at 2026-11-21 …`; nothing for a single report. */
export const repeatsText = ({ times, lastAt }: Repeats): string =>
  lastAt === null ? '' : `, ${times} times, at last at ${formatTime(lastAt)}`

/** Who acknowledged an anomaly, when and why; null: nobody. */
export const acknowledgedText = (anomaly: Acknowledgement): string | null =>
  anomaly.acknowledgedAt === null
    ? null
    : `acknowledged by ${anomaly.acknowledgedBy} at ${formatTime(anomaly.acknowledgedAt)}: ${anomaly.acknowledgedReason}`

const INDENT = '    '

/** The exchange on the wire, as the ledger keeps it: already masked. A callback is a request of the gateway. */
export function exchangeLines(source: string, exchange: Exchange | null): string[] {
  if (!exchange) return []
  const { request, response, httpStatus, tookMs, note } = exchange
  const outcome = [
    httpStatus === undefined ? null : `HTTP ${httpStatus}`,
    tookMs === undefined ? null : `${tookMs} ms`,
    note ?? null,
  ].filter((part) => part !== null)
  return [
    ...(request ? [`${INDENT}${source === 'CALLBACK' ? 'callback' : 'request '}  ${pairs(request)}`] : []),
    ...(response ? [`${INDENT}response  ${pairs(response)}`] : []),
    ...(outcome.length > 0 ? [`${INDENT}${outcome.join(', ')}`] : []),
  ]
}

/** Fields of a message, in one line. */
export const pairs = (fields: Record<string, unknown>): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ')
