import assert from 'node:assert/strict'
import { test } from 'node:test'
import { upsertMerchant } from '../../../test/ledger.ts'
import { CURRENT, FORMER, POLICY, PROMISING, twoAccounts } from '../../../test/two-accounts.ts'
import { neverSent } from '../../domain/payout/ledger-lacks-attempt.ts'
import { sentPayout } from '../../domain/payout/payout.fixture.ts'
import type { ResolveRefusal } from '../../domain/payout/resolve.ts'
import { type AskedAccount, whereabouts } from './accounts.ts'

test('the promise of the current account does not resend a payout that may have been sent to another', async (t) => {
  const { recover, takeDown, state, sentTo } = await twoAccounts(t)
  await recover(PROMISING, POLICY)
  assert.equal((await takeDown()).kind, 'recovered')
  assert.deepEqual(await state(), ['review', 'proved-absent'])
  assert.equal(await sentTo(CURRENT), 0)
})

test('every account must report that it has no such order as often as the strictest one requires', async (t) => {
  const { recover, asked, state } = await twoAccounts(t)
  await recover(POLICY, { ...POLICY, confirmations: 3 })
  assert.equal(asked(), 6)
  assert.deepEqual(await state(), ['review', 'proved-absent'])
})

test('a recovery concludes nothing once other settings are in force', async (t) => {
  const { db, recover, takeDown } = await twoAccounts(t)
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h3', feeEstimate: 0n })
  await assert.rejects(
    recover(POLICY, POLICY),
    /somebody put other gateway settings of acme into force meanwhile/,
  )
  assert.equal((await takeDown()).kind, 'open')
})

for (const says of [{ current: 'processing' }, { former: 'failed', current: 'processing' }] as const) {
  test(`the order of a lost attempt is found at another account than the known one: ${JSON.stringify(says)}`, async (t) => {
    const { recover, state } = await twoAccounts(t, { knows: true, says })
    await recover(POLICY, POLICY)
    assert.deepEqual(await state(), ['processing', null])
  })
}

test('the account that is known to have it is asked first, and the others unless it has paid', async (t) => {
  for (const [former, asked] of [
    ['success', 1],
    ['processing', 2],
  ] as const) {
    const alive = await twoAccounts(t, { knows: true, says: { former } })
    await alive.recover(POLICY, POLICY)
    assert.equal(alive.asked(), asked)
  }
  const failed = await twoAccounts(t, { knows: true, says: { former: 'failed' } })
  await failed.recover(POLICY, POLICY)
  assert.equal(failed.asked(), 2)
  assert.deepEqual(await failed.state(), ['review', 'failed-in-doubt'])
})

test('an order that is known to be at an account which the settings lack is looked up at the others', async (t) => {
  const alive = await twoAccounts(t, { knows: true, says: { current: 'processing' } })
  await alive.recover(POLICY, null)
  assert.deepEqual(await alive.state(), ['processing', null])
  const failed = await twoAccounts(t, { knows: true, says: { current: 'failed' } })
  await failed.recover(POLICY, null)
  assert.deepEqual(await failed.state(), ['review', 'failed-in-doubt'])
  const absent = await twoAccounts(t, { knows: true })
  await absent.recover({ ...POLICY, confirmations: 2 }, null)
  assert.equal(absent.asked(), 2)
  assert.deepEqual(await absent.state(), ['review', 'account-unknown'])
})

test('every account that the settings lack is named, besides the one that is known to have been used', () => {
  const current: AskedAccount = {
    ...{ ...CURRENT, queryPolicy: POLICY, leaseMs: 0, query: () => assert.fail() },
    presenceCheck: { found: () => undefined, holds: () => assert.fail() },
  }
  const missing = new Map([
    ['former', 'mchId 6 at pay.example'],
    ['third', 'mchId 7 at pay.example'],
  ])
  const { lacking, isAway } = whereabouts(sentPayout({ accountId: 'former' }), {
    accounts: [current],
    missing,
  })
  assert.equal(lacking, 'mchId 6 at pay.example, mchId 7 at pay.example')
  assert.equal(isAway, false)
})

test('a payout at one of two accounts that the settings lack is not sent again without a name at either', async (t) => {
  const { recover, takeDown, state, decide } = await twoAccounts(t, { isTold: false, knows: true })
  await recover(PROMISING, null, ['former', 'third'])
  assert.equal((await takeDown()).kind, 'recovered')
  assert.deepEqual(await state(), ['review', 'account-unknown'])
  for (const account of [CURRENT, FORMER])
    assert.deepEqual(await decide(account), { refused: { kind: 'account-not-known' } })
})

test('a payout in review at the current account, which may have been sent to one that the settings lack, is not sent again without a name', async (t) => {
  const { recover, takeDown, state, decide } = await twoAccounts(t, {
    isTold: false,
    first: { state: 'unknown', isUnderWay: false, since: [['review', { reason: 'expired' }]] },
  })
  await recover(PROMISING, null)
  assert.equal((await takeDown()).kind, 'recovered')
  assert.deepEqual(await state(), ['review', 'expired'])
  assert.deepEqual(await decide(), { refused: { kind: 'account-not-known' } })
})

const LOST = { isTold: false, says: { former: 'processing' } } as const

test('settings that are adopted during a recovery make it ask anew, because nobody asked by them', async (t) => {
  const { askBy, adopt, state, sentTo } = await twoAccounts(t, LOST)
  const takeDown = await askBy(CURRENT)
  await adopt(FORMER)
  assert.equal(await takeDown(), 'outdated')
  const takeDownAgain = await askBy(FORMER, CURRENT)
  assert.deepEqual(await state(), ['processing', null])
  assert.equal(await takeDownAgain(), 'recovered')
  assert.equal(await sentTo(FORMER), 0)
})

test('an account that joins the settings after a recovery was interrupted is asked about everything', async (t) => {
  const { askBy, state, asked } = await twoAccounts(t, LOST)
  const takeDown = await askBy(CURRENT)
  await askBy(CURRENT)
  assert.equal(asked(), 1)
  await askBy(CURRENT, FORMER)
  assert.deepEqual(await state(), ['processing', null])
  assert.equal(await takeDown(), 'outdated')
})

for (const state of ['submitting', 'unknown'] as const) {
  const first = { state, isUnderWay: false }

  test(`a payout that is ${state} at the current account, and was sent to another since, is left to no promise: the settings lack that one`, async (t) => {
    const absent = await twoAccounts(t, { first })
    await absent.recover(PROMISING, null)
    assert.deepEqual(await absent.state(), ['review', 'account-unknown'])
    const failed = await twoAccounts(t, { first, says: { current: 'failed' } })
    await failed.recover(PROMISING, null)
    assert.deepEqual(await failed.state(), ['review', 'failed-in-doubt'])
  })

  test(`a payout that is ${state} at the current account, and was sent to another since, is left to no promise: neither has it`, async (t) => {
    const { recover, state, decide } = await twoAccounts(t, { first })
    await recover(PROMISING, POLICY)
    assert.deepEqual(await state(), ['review', 'proved-absent'])
    assert.deepEqual(await decide(), { refused: { kind: 'account-not-known' } })
  })

  test(`a payout that is ${state}, and was sent once more according to an answer, is left to no promise if it is not found`, async (t) => {
    const { askBy, state, decide, move } = await twoAccounts(t, { first, isTold: false })
    await move((payout) => neverSent(payout, 'APPLY', 'attempt 2 was answered (accepted)', null, 'attempt'))
    await askBy({ ...CURRENT, queryPolicy: PROMISING })
    assert.deepEqual(await state(), ['review', 'proved-absent'])
    assert.deepEqual(await decide(), { refused: { kind: 'account-not-known' } })
  })

  test(`a payout that is ${state}, was published as accepted since, and is not found is left to no promise`, async (t) => {
    const { askBy, state, decide } = await twoAccounts(t, { first: { state: first.state, isUnderWay: true } })
    await askBy({ ...CURRENT, queryPolicy: PROMISING })
    assert.deepEqual(await state(), ['review', 'proved-absent'])
    assert.deepEqual(await decide(), { refused: { kind: 'gateway-had-it', agentpayOrderId: null } })
  })
}

const LEASE_ENDED = [
  ['unknown', { reason: 'lease-ended' }],
  ['review', { reason: 'expired' }],
] as const
const SINCE = [
  ['the ledger came to other ends under its versions', LEASE_ENDED],
  ['a person called it failed', [...LEASE_ENDED, ['failed', { reason: 'asked them', unreported: true }]]],
] as const

for (const [what, since] of SINCE)
  for (const [where, former] of [
    ['that are lacking', null],
    ['that have no such order', POLICY],
  ] as const)
    test(`a payout that was published as sent to another account, and lost, before ${what}, is left to no promise, by settings ${where}`, async (t) => {
      const { recover, decide, takeDown, state } = await twoAccounts(t, {
        first: { state: 'submitting', isUnderWay: false, since },
      })
      await recover(PROMISING, former)
      assert.equal((await state())?.[0], 'review')
      assert.equal((await takeDown()).kind, 'recovered')
      const { refused } = (await decide()) as { refused: ResolveRefusal }
      assert.match(refused.kind, /account-not-known|gateway-had-it/)
    })

test('"not found" counts without a presence check only if payoutd knows no order to check with', async (t) => {
  const blank = await twoAccounts(t, { knows: true, controls: false })
  await blank.recover(POLICY, POLICY)
  assert.equal((await blank.takeDown()).kind, 'recovered')
  const used = await twoAccounts(t, { knows: true, controls: false })
  await used.knowAtCurrent()
  await used.recover(POLICY, POLICY)
  assert.equal((await used.takeDown()).kind, 'open')
})
