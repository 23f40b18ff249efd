import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CURRENT, FORMER, POLICY, PROMISING, twoAccounts } from '../../../test/two-accounts.ts'
import { paise } from '../../domain/money.ts'
import { neverSent } from '../../domain/payout/ledger-lacks-attempt.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { sql } from '../../platform/postgres/postgres.ts'

const FIRST = { state: 'unknown', isUnderWay: false } as const
const LEASE_ENDED = [
  ['unknown', { reason: 'lease-ended' }],
  ['review', { reason: 'expired' }],
] as const
const CALLED_FAILED = [...LEASE_ENDED, ['failed', { reason: 'asked them', unreported: true }]] as const
const HAD_IT = { refused: { kind: 'gateway-had-it', agentpayOrderId: null } }
const attemptAnswered = (payout: Payout) =>
  neverSent(payout, 'APPLY', 'attempt 2 was answered (accepted)', null, 'attempt')

for (const [what, lost] of [
  ['the ledger lost every attempt', { isTold: false }],
  ['the ledger knows the first attempt', { isTold: false, first: FIRST }],
] as const)
  for (const former of ['processing', 'nothing'] as const)
    test(`the failure of the order at one account does not end a payout while ${former === 'nothing' ? 'the other has not answered' : 'the other has a live order'}: ${what}`, async (t) => {
      const { recover, takeDown, hear, known, published } = await twoAccounts(t, {
        ...lost,
        says: { current: 'processing', former },
      })
      await recover(PROMISING, POLICY)
      assert.equal((await takeDown()).kind, 'recovered')
      assert.equal((await known())?.state, 'processing')
      await hear('QUERY', CURRENT, 'failed')
      assert.equal((await known())?.state, 'review')
      assert.deepEqual(await published(), [])
      await hear('CALLBACK', FORMER, 'success', { utr: '632611200001' })
      assert.deepEqual(await known(), { state: 'paid', accountId: 'former', agentpayOrderId: 'AP-former' })
    })

for (const [settings, former] of [
  ['lack', null],
  ['have', POLICY],
] as const) {
  test(`an attempt that was lost and may be at any account stays so while the known one reports its order, then its failure: the settings ${settings} the other`, async (t) => {
    const { move, recall, recover, takeDown, hear, state, known } = await twoAccounts(t, {
      isTold: false,
      first: FIRST,
    })
    await move(attemptAnswered)
    await recall()
    await recover(PROMISING, former)
    assert.equal((await takeDown()).kind, 'recovered')
    assert.equal((await known())?.state, 'review')
    await hear('CALLBACK', CURRENT, 'processing')
    await hear('QUERY', CURRENT, 'failed')
    assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
    await hear('CALLBACK', FORMER, 'success')
    assert.deepEqual(await known(), { state: 'paid', accountId: 'former', agentpayOrderId: 'AP-former' })
  })

  test(`an order that is found at the known account does not settle where a lost attempt went: the settings ${settings} the other`, async (t) => {
    const { move, recall, recover, takeDown, hear, state } = await twoAccounts(t, {
      ...{ isTold: false, first: FIRST, says: { current: 'processing' } },
    })
    await move(attemptAnswered)
    await recall()
    await recover(PROMISING, former)
    assert.equal((await takeDown()).kind, 'recovered')
    assert.deepEqual(await state(), ['processing', null])
    await hear('QUERY', CURRENT, 'failed')
    assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
  })

  test(`an order that failed at the known account lets nobody send again without a name what was lost at another: the settings ${settings} that one`, async (t) => {
    const { recover, takeDown, state, decide } = await twoAccounts(t, {
      ...{ first: FIRST, says: { current: 'failed' } },
    })
    await recover(PROMISING, former)
    assert.equal((await takeDown()).kind, 'recovered')
    assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
    assert.deepEqual(await decide(), HAD_IT)
  })
}

test('an order that failed at another account than the known one lets nobody send again without a name', async (t) => {
  const { recover, takeDown, state, decide } = await twoAccounts(t, {
    knows: true,
    says: { current: 'failed' },
  })
  await recover(PROMISING, POLICY)
  assert.equal((await takeDown()).kind, 'recovered')
  assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
  assert.deepEqual(await decide(), HAD_IT)
})

test('an order that another account reported is not forgotten when a recovery finds that of the known one', async (t) => {
  const { knowBoth, recall, recover, takeDown, hear, state, published } = await twoAccounts(t, {
    ...{ isTold: false, first: FIRST, says: { current: 'processing', former: 'processing' } },
  })
  await knowBoth()
  await hear('CALLBACK', FORMER, 'processing')
  await recall()
  await recover(PROMISING, POLICY)
  assert.equal((await takeDown()).kind, 'recovered')
  assert.deepEqual(await state(), ['processing', null])
  await hear('QUERY', CURRENT, 'failed')
  assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
  assert.deepEqual(await published(), [])
})

test('a payment that an account reports without a name belongs to that account, so the failure at another confirms no return', async (t) => {
  const { recover, takeDown, hear, known, reverse } = await twoAccounts(t, { first: FIRST })
  await recover(PROMISING, POLICY)
  assert.equal((await takeDown()).kind, 'recovered')
  await hear('CALLBACK', FORMER, 'success', { agentpayOrderId: null })
  assert.deepEqual(await known(), { state: 'paid', accountId: 'former', agentpayOrderId: null })
  await hear('CALLBACK', CURRENT, 'failed')
  assert.equal(await reverse(), 'no-word')
})

for (const isNameless of [false, true])
  test(`a payment stays at its account when a recovery finds an order ${isNameless ? 'without a number ' : ''}at another, so its return can be confirmed`, async (t) => {
    const { recover, takeDown, hear, known, reverse } = await twoAccounts(t, {
      ...{ isTold: false, first: FIRST, isNameless, says: { current: 'failed', former: 'processing' } },
    })
    const payment = { utr: '632611200001' }
    await hear('CALLBACK', CURRENT, 'success', payment)
    await recover(PROMISING, POLICY)
    assert.equal((await takeDown()).kind, 'recovered')
    assert.deepEqual(await known(), { state: 'paid', accountId: 'current', agentpayOrderId: 'AP-current' })
    await hear('CALLBACK', CURRENT, 'failed', payment)
    assert.equal(await reverse(), 'reversed')
  })

for (const [what, since] of [
  ['is in review', LEASE_ENDED],
  ['was called failed', CALLED_FAILED],
] as const)
  test(`a payout that was published as paid, and ${what} since that was lost, is not sent again without a name`, async (t) => {
    const { recover, takeDown, known, decide } = await twoAccounts(t, {
      first: { state: 'submitting', isUnderWay: false, isPaid: true, since },
    })
    await recover(PROMISING, POLICY)
    assert.equal((await takeDown()).kind, 'recovered')
    assert.equal((await known())?.state, 'review')
    assert.deepEqual(await decide(), HAD_IT)
  })

test('a late answer does not name the order of a payment that was published and lost, so its failure confirms no return', async (t) => {
  const { recover, takeDown, answer, callItPaid, hear, known, reverse } = await twoAccounts(t, {
    first: { state: 'submitting', isUnderWay: false, isPaid: true, since: CALLED_FAILED },
  })
  await recover(PROMISING, POLICY)
  assert.equal((await takeDown()).kind, 'recovered')
  await answer({
    ...{ kind: 'accepted', agentpayOrderId: 'AP-current', fee: paise(500n), status: 'processing' },
    exchange: {},
  })
  assert.equal((await callItPaid('632611200001')).kind, 'resolved')
  await hear('CALLBACK', CURRENT, 'failed')
  assert.equal((await known())?.agentpayOrderId, null)
  assert.equal(await reverse(), 'no-word')
})

test('an attempt that a "later" left in doubt, and the ledger lost, is not sent to the next account after a recovery', async (t) => {
  const { knowBoth, askBy, adopt, makeReady, sentTo, state } = await twoAccounts(t, { isLater: true })
  await knowBoth()
  const takeDown = await askBy({ ...FORMER, queryPolicy: PROMISING })
  assert.equal(await takeDown(), 'recovered')
  await adopt(CURRENT)
  await makeReady()
  assert.equal(await sentTo(CURRENT), 0)
  assert.deepEqual(await state(), ['review', 'account-changed'])
})

const PAYMENT = { utr: '632611200001' }

for (const [what, status, fields] of [
  ['says that its own order is under way', 'processing', {}],
  ['says "success" of it knows not what', 'success', { agentpayOrderId: null }],
] as const)
  test(`a payment that a person told of stays without an account while another one ${what}`, async (t) => {
    const { knowBoth, recover, takeDown, callItPaid, hear, reverse } = await twoAccounts(t, { first: FIRST })
    await knowBoth()
    await recover(PROMISING, POLICY)
    assert.equal((await takeDown()).kind, 'recovered')
    assert.equal((await callItPaid(PAYMENT.utr)).kind, 'resolved')
    await hear('CALLBACK', CURRENT, status, fields)
    await hear('CALLBACK', FORMER, 'success', PAYMENT)
    await hear('CALLBACK', FORMER, 'failed', PAYMENT)
    assert.equal(await reverse(), 'reversed')
  })

test('a payment that a person told of, of another order than the known one, belongs to the account that names it', async (t) => {
  const { recover, takeDown, callItPaid, hear, reverse, state } = await twoAccounts(t, {
    ...{ isTold: false, first: FIRST },
    says: { current: 'processing', former: 'processing' },
  })
  await recover(PROMISING, POLICY)
  assert.equal((await takeDown()).kind, 'recovered')
  await hear('QUERY', CURRENT, 'failed')
  assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
  assert.equal((await callItPaid(PAYMENT.utr)).kind, 'resolved')
  await hear('CALLBACK', FORMER, 'success', PAYMENT)
  await hear('CALLBACK', FORMER, 'failed', PAYMENT)
  assert.equal(await reverse(), 'reversed')
})

const PAID = { state: 'submitting', isUnderWay: false, isPaid: true } as const

for (const [what, world, isResolved] of [
  ['taken over, and no account has it', { first: PAID }, false],
  ['taken over, and its account has it', { first: PAID, says: { former: 'success' } }, false],
  [
    'in review, and the known account has a failed order',
    { first: { ...PAID, since: LEASE_ENDED }, says: { current: 'failed' } },
    true,
  ],
  [
    'in review, and the known account has a live order',
    { first: { ...PAID, since: LEASE_ENDED }, says: { current: 'processing' } },
    true,
  ],
  ['called failed, and no account has it', { first: { ...PAID, since: CALLED_FAILED } }, true],
] as const)
  test(`a payment that was published and lost with its attempt belongs to the account that names it, so its return can be confirmed: ${what}`, async (t) => {
    const { knowBoth, recover, takeDown, callItPaid, hear, known, reverse } = await twoAccounts(t, world)
    await knowBoth()
    await recover(PROMISING, POLICY)
    assert.equal((await takeDown()).kind, 'recovered')
    if (isResolved) assert.equal((await callItPaid(PAYMENT.utr)).kind, 'resolved')
    assert.deepEqual(await known(), { state: 'paid', accountId: null, agentpayOrderId: null })
    await hear('CALLBACK', FORMER, 'success', PAYMENT)
    assert.deepEqual(await known(), { state: 'paid', accountId: 'former', agentpayOrderId: 'AP-former' })
    await hear('CALLBACK', FORMER, 'failed', PAYMENT)
    assert.equal(await reverse(), 'reversed')
  })

const setBackAgain = sql<object>`
  with a as (delete from anomalies)
  update payouts set doubted = false, order_besides = false, order_shown = false`
const IN_REVIEW = { ...FIRST, since: [['review', { reason: 'expired' }]] } as const

for (const answered of ['attempt', 'order-besides'] as const)
  test(`a lost attempt that an answer told of, and that was lost as well, may be alive at any account after a recovery (${answered})`, async (t) => {
    const { db, move, recall, recover, takeDown, hear, known, published } = await twoAccounts(t, {
      ...{ isTold: false, first: IN_REVIEW },
    })
    await move((payout) => neverSent(payout, 'APPLY', 'attempt 2 was answered', null, answered))
    await db.run(setBackAgain, {})
    await recall()
    await recover(PROMISING, POLICY)
    assert.equal((await takeDown()).kind, 'recovered')
    assert.deepEqual(await known(), { state: 'review', accountId: null, agentpayOrderId: null })
    await hear('CALLBACK', CURRENT, 'failed')
    assert.deepEqual(await published(), [])
    await hear('CALLBACK', FORMER, 'success', PAYMENT)
    assert.deepEqual(await known(), { state: 'paid', accountId: 'former', agentpayOrderId: 'AP-former' })
  })

test('an order that failed is besides what the known account has, which the settings lack', async (t) => {
  const { knowBoth, recover, takeDown, hear, known, published } = await twoAccounts(t, {
    ...{ isTold: false, knows: true, says: { current: 'failed' } },
  })
  await knowBoth()
  await recover(PROMISING, null)
  assert.equal((await takeDown()).kind, 'recovered')
  await hear('QUERY', FORMER, 'failed')
  assert.deepEqual(await published(), [])
  await hear('CALLBACK', FORMER, 'success', { ...PAYMENT, agentpayOrderId: 'AP3' })
  assert.deepEqual(await known(), { state: 'paid', accountId: 'former', agentpayOrderId: 'AP3' })
})
