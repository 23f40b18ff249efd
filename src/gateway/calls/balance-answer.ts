import type { Exchange } from '../../domain/evidence.ts'
import type { BalanceAnswer } from '../../domain/gateway-answers.ts'
import { readIdentifier, readSignedAmount } from '../wire/values.ts'
import type { AnswerFields, VerifiedAnswer } from '../wire/verify-answer.ts'

/**
 * The result of a balance query. The contract ("Balance record") calls the five amounts integers, so they may be below zero, as an
 * unsettled amount after a chargeback. Only the available amount must be readable: payoutd sends by it.
 */
export function readBalanceAnswer(answer: VerifiedAnswer, exchange: Exchange): BalanceAnswer {
  switch (answer.kind) {
    case 'not-sent':
      return { kind: 'unknown', reason: 'not-sent', exchange }
    case 'unknown':
      return { kind: 'unknown', reason: answer.reason, exchange }
    case 'answer':
      return answer.retCode === 'SUCCESS'
        ? (readBalance(answer.fields) ?? { kind: 'unknown', reason: 'unparsable', exchange })
        : { kind: 'unknown', reason: 'unlisted-code', exchange }
  }
}

function readBalance(fields: AnswerFields): BalanceAnswer | null {
  const amount = (name: string) => readSignedAmount(fields.get(name))
  const availableAmount = amount('availableAmount')
  if (availableAmount === null) return null
  return {
    ...{ kind: 'balance', busNo: readIdentifier(fields.get('busNo')), availableAmount },
    ...{ amount: amount('amount'), frozenAmount: amount('frozenAmount') },
    ...{ pendingAmount: amount('pendingAmount'), unsettledAmount: amount('unsettledAmount') },
  }
}
