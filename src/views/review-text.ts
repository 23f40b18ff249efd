import type { Exchange } from '../domain/evidence.ts'
import type { Instant } from '../domain/instant.ts'
import { formatAge, formatTime } from '../domain/times.ts'
import { requestText } from '../queries/request.ts'
import { type Evidence, isReadBack, type ReviewCase, type Word } from '../queries/review.ts'
import type { HistoryEntry, Sighting } from '../queries/sql/payouts/story.ts'
import { inFull } from './list-text.ts'
import { pairs } from './story-text.ts'

/** One payout in review for a person to read: why, since when, and a line for each piece of evidence. */
export function reviewText(waiting: ReviewCase, now: Instant): string {
  const { payout, evidence } = waiting
  const { payoutId, merchantId, since, reason, orderNo, attempt, agentpayOrderId, deadline } = payout
  const known = agentpayOrderId === null ? '' : `, ${agentpayOrderId} at the gateway`
  return [
    `payout ${payoutId} of ${merchantId}, in review for ${formatAge(now - since)}, since ${formatTime(since)}`,
    `  ${requestText(waiting)}`,
    `  ${whyInReview(reason)}`,
    `  order ${orderNo}${known}, ${attempt} ${attempt === 1 ? 'attempt' : 'attempts'}, deadline ${formatTime(deadline)}`,
    ...evidenceLines(evidence).map((line) => `    ${line}`),
    `  decide with: payoutd payout resolve ${payoutId} --paid --utr <UTR>, --failed --attempt ${attempt} or --resend --attempt ${attempt}`,
  ].join('\n')
}

function whyInReview(reason: string | null): string {
  switch (reason) {
    case 'expired':
      return 'expired: its deadline passed before the gateway said how it ended'
    case 'proved-absent':
      return 'proved-absent: the gateway says that it has no such order, but did not promise to refuse a second order with the same number'
    case 'not-found':
      return 'not-found: the gateway no longer knows an order to which it had given a number'
    case 'failed-in-doubt':
      return 'failed-in-doubt: the gateway says that an order with its number failed. But payoutd sent it more than once, or the ledger was set back, and the gateway did not promise to refuse a second order: another order may still be paid'
    case 'order-shown':
      return 'order-shown: it was about to be sent (again) when the gateway reported an order of it, in words that do not settle it'
    case 'refusal-withdrawn':
      return 'refusal-withdrawn: the gateway refused it and says that it has no such order, but the settings in force do not call its answer a refusal'
    case 'no-promise':
      return 'no-promise: it was to be sent again, but the gateway may still pay an earlier attempt, and the settings in force no longer say that the gateway prevents a second payment'
    case 'cancel-requested':
      return 'cancel-requested: somebody asked to cancel it, and the gateway may have an attempt'
    case 'end-published':
      return 'end-published: before the ledger was restored, payoutd published that it had ended or was sent, and the ledger lacks that (see its anomaly)'
    case 'published-before':
      return 'published-before: payoutd had published it before its command came (again) to a restored ledger, so the gateway may have it; payoutd recover queries it'
    default:
      return reason ?? 'no reason was given'
  }
}

/** Repeated reports of the same thing are one line. */
function evidenceLines({ history, anomalies }: Evidence): string[] {
  const entries = [...history.map(entry), ...anomalies.map(sighting)].filter(({ text }) => text !== '')
  const runs: { first: Instant; last: Instant; count: number; text: string }[] = []
  for (const { at, times, lastAt, text } of entries.sort((a, b) => a.at - b.at)) {
    const last = lastAt ?? at
    const run = runs.at(-1)
    if (run?.text === text) Object.assign(run, { last, count: run.count + times })
    else runs.push({ first: at, last, count: times, text })
  }
  return runs.map(({ first, last, count, text }) =>
    count === 1
      ? `${formatTime(first)}  ${text}`
      : `${formatTime(first)}  ${text}  (${count} times, until ${formatTime(last)})`,
  )
}

function entry({ at, times, lastAt, version, toState, reason, source, exchange }: HistoryEntry) {
  const moved = version === null ? '' : `→ ${inFull(toState, reason)}`
  const words = [moved, said(source, exchange)].filter((part) => part !== '')
  return { at, times, lastAt, text: words.length === 0 ? '' : [source.padEnd(8), ...words].join('  ') }
}

const sighting = ({ at, times, lastAt, kind, source, exchange }: Sighting) => ({
  at,
  times,
  lastAt,
  text: `${source.padEnd(8)}  anomaly ${kind}  ${said(source, exchange)}`.trimEnd(),
})

/** The report, without the request that it answers. */
function said(source: string, exchange: Exchange | null): string {
  if (!exchange) return ''
  const { request, response, httpStatus, note } = exchange
  if (source === 'CALLBACK' && request) return pairs(request)
  if (response)
    return `${httpStatus === undefined || httpStatus === 200 ? '' : `HTTP ${httpStatus} `}${pairs(response)}`
  return note === undefined ? '' : request ? `no answer: ${note}` : note
}

/** When the gateway last reported about an order, and what. */
export function lastWordText(word: Word | null, evidence: Evidence): string {
  if (word)
    return `the gateway last reported on it at ${formatTime(word.at)}, by ${word.source}: ${said(word.source, word.exchange)}`
  if (isReadBack(evidence))
    return 'the ledger was restored, and lacks what the gateway reported on it before that'
  const sent = evidence.attempts.at(-1)
  return `the gateway has never reported on it${sent ? `; it was last sent after ${formatTime(sent.claimedAt)}` : ''}`
}
