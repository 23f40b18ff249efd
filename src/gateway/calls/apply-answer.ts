import type { Exchange } from '../../domain/evidence.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { readAmount, readIdentifier, readMessage, readStatus, unreadableIn } from '../wire/values.ts'
import type { AnswerFields, VerifiedAnswer } from '../wire/verify-answer.ts'

/**
 * The result of an apply call (docs/design.md, "What an answer means"). An accepted answer proves only that the gateway has the
 * order: it carries neither order number nor amount. A code in none of the dialect's lists is unknown. `secrets` are the payout's
 * bank details, kept out of the message.
 */
export function readApplyAnswer(
  answer: VerifiedAnswer,
  codes: Dialect['retCodes']['apply'],
  secrets: readonly string[],
  exchange: Exchange,
): ApplyAnswer {
  switch (answer.kind) {
    case 'not-sent':
      return { kind: 'not-sent', reason: answer.reason, exchange }
    case 'unknown':
      return { kind: 'unknown', reason: answer.reason, exchange }
    case 'answer':
      return answer.retCode === 'SUCCESS'
        ? readSuccess(answer.fields, exchange)
        : readFailure(answer.retCode, answer.fields, codes, secrets, exchange)
  }
}

function readSuccess(fields: AnswerFields, exchange: Exchange): ApplyAnswer {
  const agentpayOrderId = readIdentifier(fields.get('agentpayOrderId'))
  if (agentpayOrderId === null) return { kind: 'unknown', reason: 'no-order-id', exchange }
  const fee = readAmount(fields.get('fee'))
  const status = readStatus(fields.get('status'))
  const unreadable = unreadableIn(fields, { fee: readAmount })
  return { kind: 'accepted', agentpayOrderId, fee, status, ...unreadable, exchange }
}

function readFailure(
  code: string,
  fields: AnswerFields,
  codes: Dialect['retCodes']['apply'],
  secrets: readonly string[],
  exchange: Exchange,
): ApplyAnswer {
  if (codes.duplicate.includes(code)) return { kind: 'duplicate', code, exchange }
  const message = readMessage(fields.get('retMsg') || fields.get('errorMessage'), secrets) ?? ''
  if (codes.refused.includes(code)) return { kind: 'refused', code, message, exchange }
  if (codes.retryLater.includes(code)) {
    const balanceShort = codes.balanceShort.includes(code)
    return { kind: 'retry-later', code, message, balanceShort, exchange }
  }
  return { kind: 'unknown', reason: 'unlisted-code', exchange }
}
