import type { Recovered } from './collect.ts'

/** What a recovery came to, in a stable word, and for people. Only `submitted` went as it should. */
export type RecoveryOutcome = {
  outcome: 'submitted' | 'refused' | 'not-found' | 'retry-later' | 'unknown' | 'impossible'
  message: string
}

export function recoveryOutcome(recovered: Exclude<Recovered, { kind: 'no-such-payin' }>): RecoveryOutcome {
  if (recovered.kind === 'impossible') {
    const paid = recovered.payin.state === 'paid'
    const message = paid
      ? 'it is paid already'
      : 'the gateway has not named its order, so it cannot be recovered'
    return { outcome: recovered.kind, message }
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
