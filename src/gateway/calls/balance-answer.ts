import type { Exchange } from '../../domain/evidence.ts'
import type { BalanceAnswer } from '../../domain/gateway-answers.ts'
import type { Paise } from '../../domain/money.ts'
import { readAmount, readIdentifier } from '../wire/values.ts'
import type { AnswerFields, VerifiedAnswer } from '../wire/verify-answer.ts'

/**
 * The result of a balance query. All five amounts must be whole numbers of paise (gateway contract, "Balance record"): a partly
 * unreadable balance covers nothing.
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
  const amounts: Partial<Record<(typeof AMOUNTS)[number], Paise>> = {}
  for (const name of AMOUNTS) {
    const amount = readAmount(fields.get(name))
    if (amount === null) return null
    amounts[name] = amount
  }
  const busNo = readIdentifier(fields.get('busNo'))
  return { kind: 'balance', busNo, ...(amounts as Record<(typeof AMOUNTS)[number], Paise>) }
}

const AMOUNTS = ['amount', 'frozenAmount', 'availableAmount', 'pendingAmount', 'unsettledAmount'] as const
