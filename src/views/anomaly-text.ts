import { saidAgainst } from '../domain/anomaly-details.ts'
import { reportedThereText } from '../domain/payout/apply-evidence.ts'
import { NEVER_SENT } from '../domain/payout/ledger-lacks-attempt.ts'
import { type End, endedUnpaid } from '../domain/payout/states.ts'
import { formatTime } from '../domain/times.ts'
import type { ListedAnomaly, WholeAnomaly } from '../queries/sql/anomalies.ts'
import { table } from '../text/table.ts'
import { acknowledgedText, exchangeLines, repeatsText } from './story-text.ts'

const HEADINGS = ['ANOMALY', 'SINCE', 'TIMES', 'KIND', 'ABOUT', 'ACKNOWLEDGED', 'WHAT']

/** A table with a line for each anomaly. */
export function anomalyListText(anomalies: readonly ListedAnomaly[]): string {
  const rows = anomalies.map((anomaly) => [
    anomaly.anomalyId,
    formatTime(anomaly.at),
    String(anomaly.times),
    anomaly.kind,
    anomaly.payoutId ?? anomaly.orderNo ?? '',
    anomaly.acknowledgedBy === null ? 'no' : `by ${anomaly.acknowledgedBy}`,
    anomaly.detail,
  ])
  return table([HEADINGS, ...rows], ['', '', '>', '', '', '', '']).join('\n')
}

/** One anomaly for a person to read, with the whole exchange on the wire. */
export const anomalyText = (anomaly: WholeAnomaly): string =>
  [
    `anomaly ${anomaly.anomalyId}: ${anomaly.kind}`,
    `  ${anomaly.detail}`,
    `  ${about(anomaly)}, by ${anomaly.source} at ${formatTime(anomaly.at)}${repeatsText(anomaly)}`,
    `  ${acknowledgedText(anomaly) ?? 'not acknowledged'}`,
    ...exchangeLines(anomaly.source, anomaly.exchange),
    ...(anomaly.acknowledgedAt === null ? [`  ${next(anomaly)}`] : []),
  ].join('\n')

/** What follows if the gateway has paid, or may pay, a payout that payoutd published as an unpaid end. */
export const tellThem = (state: Exclude<End, 'paid'>): string =>
  `payoutd published it as ${state}, so whoever requested it may pay it again: warn them, then run payoutd anomaly acknowledge`

/** What the operator does about it. */
function next({ anomalyId, kind, detail, payoutId, payoutState, source }: WholeAnomaly): string {
  const against = payoutState === null ? [] : saidAgainst(payoutState)
  const isAgainst = against.some((beginning) => detail.startsWith(beginning))
  if (kind === 'contradiction' && (source === 'CALLBACK' || source === 'QUERY') && isAgainst) {
    if (payoutState !== null && endedUnpaid(payoutState)) return `${tellThem(payoutState)} ${anomalyId}`
    if (payoutState === 'paid')
      return `if its money came back, run payoutd payout reverse ${payoutId}; if not, payoutd anomaly acknowledge ${anomalyId}`
  }
  if (
    kind === NEVER_SENT &&
    payoutState !== null &&
    endedUnpaid(payoutState) &&
    !detail.startsWith(reportedThereText('failed'))
  )
    return `${tellThem(payoutState)} ${anomalyId}`
  return `once you have looked into it, run payoutd anomaly acknowledge ${anomalyId}`
}

const about = ({ payoutId, orderNo }: WholeAnomaly): string =>
  payoutId === null ? `about order ${orderNo}` : `about payout ${payoutId}, order ${orderNo}`
