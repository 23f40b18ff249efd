import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, accepted, testLedger } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import type { Payout } from '../domain/payout/payout.ts'
import type { Resolution } from '../domain/payout/resolve.ts'
import { become } from '../domain/payout/transition.ts'
import { cancelPayouts } from './cancel-payouts.ts'
import { decided, submit } from './operations.fixture.ts'
import { previewRelease, releasePayouts } from './release-payouts.ts'
import { previewResolve, type ResolveRequest, resolvePayout } from './resolve-payout.ts'

const WHO = { by: 'asha', reason: 'a trial' }
const LOOK = { payPeriod: 'month' as const, known: null }
const RESEND: Resolution = {
  ...{ kind: 'resend', attempt: 1, cancelRequest: null, confirmedAbsentBy: 'their support', deadline: null },
  terms: { ...ACCOUNT, duplicatesRefused: false, notPaidCodes: [], deadlineMs: 7_200_000 },
}

/** Equal payments in several batches, of which each is held for the others. */
async function world(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  const toState = (payoutId: string, state: 'unknown' | 'review') =>
    decided(ledger, payoutId, (before: Payout) => ({
      change: {
        before,
        after: become(before, state, { reason: 'timeout' }),
        source: 'CLOCK',
        exchange: null,
      },
    }))
  const releasing = (payoutId: string) => ({ merchantId: 'acme', payoutIds: [payoutId], ...WHO, ...LOOK })
  const resending = (payoutId: string) => ({
    ...{ merchantId: 'acme', payoutId, ...WHO, resolution: RESEND, lookForOthers: LOOK },
  })
  return {
    take: (payoutId: string, batchId: string) =>
      accepted(ledger, config, [command(payoutId, { batchId })], { holdDuplicates: true }),
    cancel: (payoutId: string) =>
      cancelPayouts({ merchantId: 'acme', payoutIds: [payoutId], ...WHO }, ledger),
    async toReview(payoutId: string) {
      await decided(ledger, payoutId, submit)
      await toState(payoutId, 'unknown')
      await toState(payoutId, 'review')
    },
    showRelease: (payoutId: string) => previewRelease({ ...releasing(payoutId), shown: null }, ledger.db),
    release: async (payoutId: string, shown: Awaited<ReturnType<typeof previewRelease>> | null) =>
      (await releasePayouts({ ...releasing(payoutId), shown }, ledger))[0]?.kind,
    async showResend(payoutId: string) {
      const seen = await previewResolve({ ...resending(payoutId), shown: null }, ledger.db)
      assert.ok(seen.kind === 'resolved')
      return seen.shown
    },
    resend: async (payoutId: string, shown: ResolveRequest['shown']) =>
      (await resolvePayout({ ...resending(payoutId), shown }, ledger)).kind,
  }
}

test('a release is not carried out if another payment that it showed in review was sent again meanwhile', async (t) => {
  const { take, cancel, toReview, showRelease, release, showResend, resend } = await world(t)
  await take('one', 'b1')
  await take('two', 'b2')
  await cancel('one')
  await take('three', 'b3')
  await release('three', null)
  await toReview('three')
  const shown = await showRelease('two')
  assert.equal(await resend('three', await showResend('three')), 'resolved')
  assert.equal(await release('two', shown), 'moved')
})

test('of two equal payments in review that two people send again at the same moment, one is', async (t) => {
  const { take, toReview, release, showResend, resend } = await world(t)
  await take('one', 'b1')
  await take('two', 'b2')
  await release('two', null)
  await toReview('one')
  await toReview('two')
  const [one, two] = [await showResend('one'), await showResend('two')]
  assert.equal(await resend('one', one), 'resolved')
  assert.notEqual(await resend('two', two), 'resolved')
})
