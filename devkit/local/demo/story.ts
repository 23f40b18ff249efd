import { type ExpectedOutcome, timesPaid } from '../../oracle/outcome.ts'
import type { PublishedAnomaly } from '../../oracle/published-messages.ts'

/** Summarizes how a payout ended, from its own events and the gateway's books. */
export function storyOf(payout: ExpectedOutcome, anomalies: readonly PublishedAnomaly[]): string {
  const { asked, events, ends, orders, state } = payout
  const [end] = ends
  const was = (wanted: string) => events.some(({ toState }) => toState === wanted)
  const because = (reason: string) => events.some((event) => event.reason === reason)
  const callbacks = orders.reduce((sent, order) => sent + order.callbacksSent, 0)
  const kinds = new Set(
    anomalies.filter(({ payoutId }) => payoutId === asked.payoutId).map(({ kind }) => kind),
  )
  return [
    ...(was('UNKNOWN') ? ['result unknown'] : []),
    ...(because('proved-absent') ? ['confirmed absent, sent again'] : []),
    ...(because('TOO_FAST') ? ['sent again later'] : []),
    ...(callbacks > 1 ? [`${callbacks} callbacks`] : []),
    ...(end?.evidence === 'QUERY' ? ['queried'] : []),
    ...[...kinds].map((kind) => `anomaly "${kind}"`),
    `${(end?.status ?? state ?? 'lost').toLowerCase()}${paidHowOften(timesPaid(payout))}`,
  ].join(', ')
}

const paidHowOften = (times: number): string => (times === 0 ? '' : times === 1 ? ' once' : ` ${times} TIMES`)
