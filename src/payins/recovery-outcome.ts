import type { Payin } from '../domain/payin/payin.ts'
import type { UtrRecovery } from './collect.ts'

/** What a recovery came to, in a stable word, and for people. Only `submitted` went as it should. */
export type UtrRecoveryOutcome = {
  outcome: 'submitted' | 'refused' | 'not-found' | 'retry-later' | 'unknown' | 'impossible'
  message: string
}

export function recoveryOutcome(recovered: Extract<UtrRecovery, { payin: Payin }>): UtrRecoveryOutcome {
  if (recovered.kind === 'impossible') {
    return { outcome: recovered.kind, message: whyImpossible(recovered.payin) }
  }
  const { answer } = recovered
  switch (answer.kind) {
    case 'submitted':
      return {
        outcome: 'submitted',
        message: 'submitted: the gateway looks for the payment and is asked about it',
      }
    case 'refused':
    case 'not-found':
    case 'retry-later':
      return { outcome: answer.kind, message: `the gateway says ${answer.code} ${answer.message}`.trimEnd() }
    case 'unknown':
      return {
        outcome: 'unknown',
        message: `no answer that counts (${answer.reason}): the gateway is asked about it`,
      }
  }
}

function whyImpossible({ state, payOrderId, accountId }: Payin): string {
  if (state === 'paid') return 'it is paid already'
  return payOrderId === null
    ? 'the gateway has not named its order, so it cannot be recovered'
    : `the settings have no gateway account ${accountId}, where it was asked for: add it to formerAccounts`
}
