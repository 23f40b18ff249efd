import type { ApplyAnswer } from '../../src/payout/answers.ts'
import { isEnd } from '../../src/payout/states.ts'
import { become, change } from '../../src/payout/transition.ts'
import { type Parts, PRODUCT as product } from './parts.ts'

const taken = (kind: ApplyAnswer['kind'], answer: ApplyAnswer): ApplyAnswer =>
  answer.kind === kind ? { kind: 'refused', code: kind, message: '', exchange: answer.exchange } : answer

/** A payoutd without each of its safeguards in turn, by what it does instead. */
export const MISSING: Record<string, Partial<Parts>> = {
  'absence is believed at once': {
    recordAbsence: (payout, exchange, control, table, now) =>
      product.recordAbsence(payout, exchange, control, { ...table, graceMs: 0, confirmations: 1 }, now),
  },
  'absence is believed without a positive control': {
    recordAbsence: (payout, exchange, { askedAt }, table, now) =>
      product.recordAbsence(payout, exchange, { askedAt, positiveControl: true }, table, now),
  },
  'a duplicate is taken for refused': {
    recordApply: (payout, attempt, answer, table, now) =>
      product.recordApply(payout, attempt, taken('duplicate', answer), table, now),
  },
  'a timeout is taken for failed': {
    recordApply: (payout, attempt, answer, table, now) =>
      product.recordApply(payout, attempt, taken('unknown', answer), table, now),
  },
  'the answer to an old attempt counts': {
    recordApply: (payout, _attempt, answer, table, now) =>
      product.recordApply(payout, payout.attempt, answer, table, now),
  },
  'amounts are not compared': {
    settle: (payout, report, source, table, now) =>
      product.settle(payout, { ...report, amount: payout.amount }, source, table, now),
  },
  'the last word wins': {
    settle: (payout, report, source, table, now) => {
      if (!isEnd(payout.state) || payout.attempt === 0) {
        return product.settle(payout, report, source, table, now)
      }
      const reopened = product.settle({ ...payout, state: 'processing' }, report, source, table, now)
      return 'change' in reopened ? { change: { ...reopened.change, before: payout } } : reopened
    },
  },
  'a lease that ends means queued again': {
    whenDue: (payout, table, now) =>
      payout.state === 'submitting'
        ? change(payout, become(payout, 'queued', { ready: true }), 'CLOCK', null)
        : product.whenDue(payout, table, now),
  },
  'a deadline changes nothing': {
    whenDue: (payout, table, now) => {
      const decision = product.whenDue(payout, table, now)
      const expires = 'change' in decision && decision.change.after.reason === 'expired'
      return expires ? { nothing: true } : decision
    },
  },
  'no lease fence': { maySend: () => true },
  'the intent is not committed before the send': { commitsIntent: 'with the answer' },
  'what was sent is cancelled all the same': {
    cancel: (payout, source, why) => product.cancel({ ...payout, attempt: 0 }, source, why),
  },
  'a person sends again without asking': {
    resolve: (payout, resolution, decided, now) =>
      product.resolve(
        payout,
        resolution.kind === 'resend' ? { ...resolution, confirmedAbsentBy: 'nobody' } : resolution,
        decided,
        now,
      ),
  },
  'the balance is not minded': {
    covered: (amounts, purse) => ({ ...product.covered(amounts, purse), count: amounts.length }),
  },
  'messages are forgotten before they are published': { forgetsMessages: 'when read' },
  'offsets are moved before the commands are stored': { movesOffset: 'before them' },
}
