import type { Instant } from '../instant.ts'
import { ANOTHER_ORDER } from '../payout/apply-evidence.ts'
import { nextQueryAt, type QueryPolicy } from '../payout/next-query.ts'
import { leftWithBesides } from './apply-evidence.ts'
import type { PayinCreateAnswer } from './gateway-answers.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { isEnd } from './states.ts'
import { anomaly, become, change } from './transition.ts'

/**
 * What the answer to the creation does to its payin. Each payin has one such call, so its answer counts until something
 * better is known; it never undoes a callback or a query that came first.
 */
export function recordCreate(
  payin: Payin,
  answer: PayinCreateAnswer,
  queryPolicy: QueryPolicy,
  now: Instant,
): PayinDecision {
  const { exchange } = answer
  const undecided = payin.state === 'creating' || payin.state === 'unknown'
  switch (answer.kind) {
    case 'accepted': {
      const { payOrderId, payParams: checkout } = answer
      if (payin.payOrderId !== null && payin.payOrderId !== payOrderId) {
        const detail = `the creation says ${payOrderId}, but the payin has ${payin.payOrderId}`
        const decision = anomaly(payin, 'CREATE', ANOTHER_ORDER, detail, exchange)
        if (isEnd(payin.state)) return decision
        const after = leftWithBesides(payin, queryPolicy, now)
        return { ...decision, change: { before: payin, after, source: 'CREATE', exchange: null } }
      }
      if (payin.state === 'failed' && payin.payOrderId === null) {
        const detail = `the creation was accepted as ${payOrderId}, yet the payin is failed (${payin.reason})`
        return anomaly(payin, 'CREATE', 'contradiction', detail, exchange)
      }
      const after = undecided
        ? become(payin, 'open', now, { payOrderId, checkout, dueAt: nextQueryAt(0, queryPolicy, now) })
        : { ...payin, payOrderId, checkout }
      return change(payin, after, 'CREATE', exchange)
    }
    case 'refused':
    case 'retry-later':
    case 'not-sent': {
      if (undecided && payin.orderShown) return asked(why(answer))
      if (undecided)
        return change(payin, become(payin, 'failed', now, { reason: why(answer) }), 'CREATE', exchange)
      if (payin.state === 'failed') return change(payin, payin, 'CREATE', exchange)
      const detail = `the creation came to ${answer.kind} (${why(answer)}), yet the payin is ${payin.state}`
      return anomaly(payin, 'CREATE', 'contradiction', detail, exchange)
    }
    case 'duplicate':
    case 'unknown': {
      const isThere = answer.kind === 'duplicate' && undecided
      const there = isThere ? { ...payin, orderShown: true, notFoundCount: 0 } : payin
      return asked(answer.kind === 'unknown' ? answer.reason : 'duplicate', there)
    }
  }

  function asked(reason: string, there: Payin = payin): PayinDecision {
    if (payin.state !== 'creating') return change(payin, there, 'CREATE', exchange)
    const fields = { reason, unknownSince: now, dueAt: nextQueryAt(0, queryPolicy, now) }
    return change(payin, become(there, 'unknown', now, fields), 'CREATE', exchange)
  }
}

const why = (answer: Extract<PayinCreateAnswer, { kind: 'refused' | 'retry-later' | 'not-sent' }>): string =>
  answer.kind === 'not-sent' ? answer.reason : answer.message || answer.code
