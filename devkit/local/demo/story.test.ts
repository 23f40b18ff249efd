import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paise } from '../../../src/domain/money.ts'
import type { ExpectedOutcome } from '../../oracle/outcome.ts'
import type { PublishedEvent } from '../../oracle/published-messages.ts'
import { storyOf } from './story.ts'

type ToldStep = Partial<PublishedEvent> & { toState: string }

function payout(
  steps: ToldStep[],
  order: { timesPaid: number; callbacksSent: number },
  evidence = 'CALLBACK',
): ExpectedOutcome {
  const last = steps.at(-1)?.toState ?? ''
  const common = { eventId: 'e', merchantId: 'acme', payoutId: 'p1', version: 1, evidence }
  return {
    asked: { merchantId: 'acme', payoutId: 'p1', amount: paise(100n), payee: 'x', row: 1 },
    state: last,
    events: steps.map((step) => ({
      ...common,
      mchOrderNo: 'O1',
      agentpayOrderId: 'AP1',
      reason: null,
      ...step,
    })),
    ends: [{ ...common, status: last, amount: paise(100n), fee: null, utr: null, errors: [] }],
    kept: null,
    orders: [
      {
        mchOrderNo: 'O1',
        agentpayOrderId: 'AP1',
        amount: paise(100n),
        fee: paise(0n),
        status: 2,
        applyCalls: 1,
        utr: null,
        payee: 'x',
        ...order,
      },
    ],
  }
}

test('the story of a payout without incident says only that it was paid', () => {
  const plain = payout([{ toState: 'QUEUED' }, { toState: 'PAID' }], { timesPaid: 1, callbacksSent: 1 })
  assert.equal(storyOf(plain, []), 'paid once')
})

test('the story of a lost order says how payoutd found out', () => {
  const steps = [{ toState: 'UNKNOWN' }, { toState: 'QUEUED', reason: 'proved-absent' }, { toState: 'PAID' }]
  const lost = payout(steps, { timesPaid: 1, callbacksSent: 1 })
  assert.equal(storyOf(lost, []), 'result unknown, confirmed absent, sent again, paid once')
})

test('a contradiction is in the story of its payout, and in no other', () => {
  const paid = payout([{ toState: 'PAID' }], { timesPaid: 1, callbacksSent: 2 }, 'QUERY')
  const anomaly = (payoutId: string) => ({
    eventId: 'a',
    merchantId: 'acme',
    payoutId,
    mchOrderNo: null,
    kind: 'contradiction',
    detail: '',
  })
  assert.equal(storyOf(paid, [anomaly('p1')]), '2 callbacks, queried, anomaly "contradiction", paid once')
  assert.equal(storyOf(paid, [anomaly('p2')]), '2 callbacks, queried, paid once')
})

test('a payout that was paid twice cannot be overlooked', () => {
  const twice = payout([{ toState: 'PAID' }], { timesPaid: 2, callbacksSent: 1 })
  assert.equal(storyOf(twice, []), 'paid 2 TIMES')
})
