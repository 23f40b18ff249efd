import { table } from '../platform/table.ts'
import type { ListedAnomaly, WholeAnomaly } from './sql/anomalies.ts'
import { acknowledgedText, exchangeLines } from './story-text.ts'
import { formatTime } from './times.ts'

const HEADINGS = ['ANOMALY', 'SINCE', 'KIND', 'ABOUT', 'ACKNOWLEDGED', 'WHAT']

/** A table with a line for each anomaly. */
export function anomalyListText(anomalies: readonly ListedAnomaly[]): string {
  const rows = anomalies.map((anomaly) => [
    anomaly.anomalyId,
    formatTime(anomaly.at),
    anomaly.kind,
    anomaly.payoutId ?? anomaly.orderNo ?? '',
    anomaly.acknowledgedBy === null ? 'no' : `by ${anomaly.acknowledgedBy}`,
    anomaly.detail,
  ])
  return table([HEADINGS, ...rows], ['', '', '', '', '', '']).join('\n')
}

/** One anomaly for a person to read, with all that was said on the wire. */
export const anomalyText = (anomaly: WholeAnomaly): string =>
  [
    `anomaly ${anomaly.anomalyId}: ${anomaly.kind}`,
    `  ${anomaly.detail}`,
    `  ${about(anomaly)}, by ${anomaly.source} at ${formatTime(anomaly.at)}`,
    `  ${acknowledgedText(anomaly) ?? 'nobody has acknowledged it'}`,
    ...exchangeLines(anomaly.source, anomaly.exchange),
  ].join('\n')

const about = ({ payoutId, orderNo }: WholeAnomaly): string =>
  payoutId === null ? `about order ${orderNo}` : `about payout ${payoutId}, order ${orderNo}`
