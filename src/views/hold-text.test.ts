import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredHold } from '../queries/sql/payouts/holds.ts'
import { holdText } from './hold-text.ts'

const HOLD: StoredHold = {
  ...{
    payoutId: 'again',
    reason: 'beneficiary-changed',
    earlierPayoutId: 'first',
    earlierBatchId: 'november',
  },
  ...{ earlierMerchantId: null, inSameBatch: false, earlierState: 'paid', earlierMayBePaid: false },
  ...{ earlierCameBack: false, paysAt: 0, since: Date.UTC(2026, 10, 1) },
}
const textOf = (fields: Partial<StoredHold>) => holdText({ ...HOLD, ...fields })

test('bank details count as used only once somebody was paid to them', () => {
  assert.match(
    textOf({}),
    /differ from those used .* since 2026-11-01.*, last by payout first of batch november \(paid\)$/,
  )
  assert.match(
    textOf({ earlierState: 'failed', earlierMayBePaid: true }),
    /used .* \(failed, yet the gateway has said otherwise/,
  )
  for (const earlierState of ['held', 'processing', 'cancelled'] as const)
    assert.match(
      textOf({ earlierState }),
      new RegExp(`differ from those of payout first of batch november \\(${earlierState}\\) of 2026-11-01`),
    )
})

test('a payment whose money came back is called that', () => {
  assert.match(textOf({ earlierCameBack: true }), / \(paid, and the money came back\)$/)
  assert.match(
    textOf({ reason: 'duplicate', earlierCameBack: true }),
    / \(paid, and the money came back\) of /,
  )
})
