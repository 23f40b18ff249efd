import type { Payin } from '../domain/payin/payin.ts'
import type { UtrRecovery } from './collect.ts'

/** The result of a recovery, as a stable word and as text for people. Only `submitted` is a success. */
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
        message: 'submitted: the gateway looks for the payment, and payoutd queries the result',
      }
    case 'refused':
    case 'not-found':
    case 'retry-later':
      return { outcome: answer.kind, message: `the gateway says ${answer.code} ${answer.message}`.trimEnd() }
    case 'unknown':
      return {
        outcome: 'unknown',
        message: `no valid answer (${answer.reason}): payoutd queries the result`,
      }
  }
}

function whyImpossible({ state, payOrderId, accountId }: Payin): string {
  if (state === 'paid') return 'it is paid already'
  return payOrderId === null
    ? 'the gateway has given no order number for this payin, so payoutd cannot recover it'
    : `the settings have no gateway account ${accountId}, where the payin was created: add it to formerAccounts`
}
