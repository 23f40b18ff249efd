import type { Exchange } from '../../domain/evidence.ts'
import type { PayinCreateAnswer, PayParams } from '../../domain/payin/gateway-answers.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { readJsonFields } from '../wire/json-fields.ts'
import { readIdentifier, readMessage } from '../wire/values.ts'
import type { AnswerFields, VerifiedAnswer } from '../wire/verify-answer.ts'

/**
 * The result of creating a payin. A code in none of the dialect's lists is unknown. `secrets` are the payer's details, kept out
 * of the message.
 */
export function readPayinCreateAnswer(
  answer: VerifiedAnswer,
  codes: Dialect['retCodes']['payinCreate'],
  secrets: readonly string[],
  exchange: Exchange,
): PayinCreateAnswer {
  switch (answer.kind) {
    case 'not-sent':
      return { kind: 'not-sent', reason: answer.reason, exchange }
    case 'unknown':
      return { kind: 'unknown', reason: answer.reason, exchange }
    case 'answer': {
      const { retCode: code, fields } = answer
      if (code === 'SUCCESS') return readCreated(fields, exchange)
      if (codes.duplicate.includes(code)) return { kind: 'duplicate', code, exchange }
      const message = readMessage(fields.get('retMsg'), secrets) ?? ''
      if (codes.refused.includes(code)) return { kind: 'refused', code, message, exchange }
      if (codes.retryLater.includes(code)) return { kind: 'retry-later', code, message, exchange }
      return { kind: 'unknown', reason: 'unlisted-code', exchange }
    }
  }
}

function readCreated(fields: AnswerFields, exchange: Exchange): PayinCreateAnswer {
  const payOrderId = readIdentifier(fields.get('payOrderId'))
  if (payOrderId === null) return { kind: 'unknown', reason: 'no-order-id', exchange }
  return { kind: 'accepted', payOrderId, payParams: readPayParams(fields.get('payParams') ?? ''), exchange }
}

/** The order exists whatever this field holds, so unreadable values become null. */
function readPayParams(text: string): PayParams {
  const given = readJsonFields(text)
  const read = (name: keyof PayParams) => given?.get(name) || null
  return {
    payMethod: read('payMethod'),
    payUrl: read('payUrl'),
    qrString: read('qrString'),
    url: read('url'),
    upi: read('upi'),
  }
}
