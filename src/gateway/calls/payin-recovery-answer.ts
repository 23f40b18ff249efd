import type { Exchange } from '../../domain/evidence.ts'
import type { PayinRecoverAnswer } from '../../domain/payin/gateway-answers.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { readIdentifier, readMessage } from '../wire/values.ts'
import type { AnswerFields, VerifiedAnswer } from '../wire/verify-answer.ts'

/** The result of a recovery of the order `payOrderId`. A code in none of the dialect's lists is unknown. */
export function readPayinRecoverAnswer(
  answer: VerifiedAnswer,
  payOrderId: string,
  codes: Dialect['retCodes']['payinRecovery'],
  exchange: Exchange,
): PayinRecoverAnswer {
  switch (answer.kind) {
    case 'not-sent':
      return { kind: 'unknown', reason: 'not-sent', exchange }
    case 'unknown':
      return { kind: 'unknown', reason: answer.reason, exchange }
    case 'answer': {
      const { retCode: code, fields } = answer
      if (code === 'SUCCESS') return readSubmitted(fields, payOrderId, exchange)
      const message = readMessage(fields.get('retMsg') || fields.get('errorMessage'), []) ?? ''
      if (codes.refused.includes(code)) return { kind: 'refused', code, message, exchange }
      if (codes.notFound.includes(code)) return { kind: 'not-found', code, message, exchange }
      if (codes.retryLater.includes(code)) return { kind: 'retry-later', code, message, exchange }
      return { kind: 'unknown', reason: 'unlisted-code', exchange }
    }
  }
}

function readSubmitted(fields: AnswerFields, payOrderId: string, exchange: Exchange): PayinRecoverAnswer {
  // By the contract this field carries the platform order number, although the order is no payout.
  const named = readIdentifier(fields.get('agentpayOrderId'))
  if (named !== null && named !== payOrderId) return { kind: 'unknown', reason: 'other-order', exchange }
  return {
    kind: 'submitted',
    mchOrderNo: readIdentifier(fields.get('mchOrderNo')),
    errorMessage: readMessage(fields.get('errorMessage'), []),
    exchange,
  }
}
