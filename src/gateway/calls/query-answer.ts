import type { Exchange, OrderReport } from '../../domain/evidence.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { VerifiedAnswer } from '../wire/verify-answer.ts'
import { readOrderReport } from './order-report.ts'
import type { QueryBy } from './query.ts'

/**
 * The result of a payout query (docs/design.md, "What an answer means"). A report counts only if it names the order in the query:
 * an answer about another order says nothing.
 */
export function readQueryAnswer(
  answer: VerifiedAnswer,
  by: QueryBy,
  codes: Dialect['retCodes']['query'],
  exchange: Exchange,
): QueryAnswer {
  switch (answer.kind) {
    case 'not-sent':
      return { kind: 'unknown', reason: 'not-sent', exchange }
    case 'unknown':
      return { kind: 'unknown', reason: answer.reason, exchange }
    case 'answer': {
      if (answer.retCode === 'SUCCESS') return readFound(readOrderReport(answer.fields, exchange), by)
      if (codes.notFound.includes(answer.retCode)) return { kind: 'not-found', exchange }
      const reason = codes.retry.includes(answer.retCode) ? 'retry-later' : 'unlisted-code'
      return { kind: 'unknown', reason, exchange }
    }
  }
}

function readFound(report: OrderReport, by: QueryBy): QueryAnswer {
  const [asked, named] =
    'mchOrderNo' in by ? [by.mchOrderNo, report.mchOrderNo] : [by.agentpayOrderId, report.agentpayOrderId]
  if (named === asked) return { kind: 'found', report }
  const reason = named ? 'other-order' : 'no-order-id'
  return { kind: 'unknown', reason, exchange: report.exchange }
}
