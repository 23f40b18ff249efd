import type { Exchange } from '../../domain/evidence.ts'
import type { PayinQueryAnswer, PayinReport } from '../../domain/payin/gateway-answers.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { VerifiedAnswer } from '../wire/verify-answer.ts'
import type { PayinQueryBy } from './payin-query.ts'
import { readPayinReport } from './payin-report.ts'

/** The result of a payin query. A report counts only if it names the order in the query. */
export function readPayinQueryAnswer(
  answer: VerifiedAnswer,
  by: PayinQueryBy,
  codes: Dialect['retCodes']['payinQuery'],
  exchange: Exchange,
): PayinQueryAnswer {
  switch (answer.kind) {
    case 'not-sent':
      return { kind: 'unknown', reason: 'not-sent', exchange }
    case 'unknown':
      return { kind: 'unknown', reason: answer.reason, exchange }
    case 'answer': {
      const { retCode: code, fields } = answer
      if (code === 'SUCCESS') return readKnown(readPayinReport(fields, exchange), by)
      if (codes.notFound.includes(code)) return { kind: 'not-found', exchange }
      if (codes.retry.includes(code)) return { kind: 'retry', code, exchange }
      return { kind: 'unknown', reason: 'unlisted-code', exchange }
    }
  }
}

function readKnown(report: PayinReport, by: PayinQueryBy): PayinQueryAnswer {
  const [asked, named] =
    'payOrderId' in by ? [by.payOrderId, report.payOrderId] : [by.mchOrderNo, report.mchOrderNo]
  if (named === asked) return { kind: 'known', report }
  const reason = named ? 'other-order' : 'no-order-id'
  return { kind: 'unknown', reason, exchange: report.exchange }
}
