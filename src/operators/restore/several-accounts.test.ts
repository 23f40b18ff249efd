import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, accepted, payoutsOf, setBalance, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import { neverSent } from '../../domain/payout/ledger-lacks-attempt.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { type ResolveRefusal, resolve } from '../../domain/payout/resolve.ts'
import type { State } from '../../domain/payout/states.ts'
import { become, change, type PayoutFields } from '../../domain/payout/transition.ts'
import { lockPayouts, storeDecisions } from '../../ledger/ledger.ts'
import type { Fence } from '../../ledger/sql/fence.ts'
import { outboxMessages } from '../../ledger/sql/outbox-messages.ts'
import type { IncomingRecord } from '../../platform/kafka/records.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { claim } from '../../stages/dispatch/claim.ts'
import { adoptSettings } from '../gateway-settings.ts'
import type { AskedAccount } from './accounts.ts'
import { readBackPublished } from './read-back-published.ts'
import { fence, listOpen, lowerAfterRestore, queryOpen } from './restore.ts'

const WHO = { by: 'asha', reason: 'restored' }
const TABLE = { queryAfterMs: [1], graceMs: 0, confirmations: 1, resendWhenAbsent: false }
const FORMER = { ...ACCOUNT, accountId: 'former', settingsHash: 'h1' }
const CURRENT = { ...ACCOUNT, accountId: 'current', settingsHash: 'h2' }
const SETTINGS = {
  ...{ baseUrl: 'https://gateway.example', mchId: '1000100' },
  ...{ keyFingerprint: 'k', dialectName: 'sandbox' },
}

const outbox = sql<object, { topic: string; key: string; value: Buffer }>`
  select topic, key, value from ${outboxMessages} order by position, n`
const restored = sql<object>`
  with a as (delete from attempts), h as (delete from history where version > 1), o as (delete from outbox),
    m as (update merchants set settings_hash = 'h2')
  update payouts set state = 'queued', attempt = 0, version = 1, account_id = null, ready = true, due_at = deadline`

/** Back to when nobody knew the outcome of its attempt at the former account. */
const unknownAtFormer = sql<object>`
  update payouts set state = 'unknown', unknown_since = now(), due_at = deadline`
const back = sql<object>`update merchants set settings_hash = 'h2'`

/** Back to when its first attempt was on the wire, or nobody knew its outcome. */
const firstAttempt = sql<{ state: string }>`
  with a as (delete from attempts where attempt > 1), h as (delete from history where version > 2),
    o as (delete from outbox), m as (update merchants set settings_hash = 'h2')
  update payouts set state = ${'state'}, attempt = 1, version = 2, account_id = 'current', ready = false,
    unknown_since = now(), due_at = deadline, reason = null`
const paidAtCurrent = sql<object>`
  update payouts set state = 'paid', account_id = 'current', agentpay_order_id = 'AP0', ready = false, due_at = null
  where payout_id = 'known'`
const inForce = sql<{ settingsHash: string }>`update merchants set settings_hash = ${'settingsHash'}`

type Says = Record<string, OrderReport['status']>
type Asked = typeof ACCOUNT & { queryPolicy?: typeof TABLE }
/** `isUnderWay`: the next attempt was published as accepted. `since`: what the ledger did since then. */
type First = {
  state: 'submitting' | 'unknown'
  isUnderWay: boolean
  since?: readonly (readonly [State, PayoutFields])[]
}

/**
 * `p` was sent to the former account, and the ledger lost that: it was restored, and the current account was adopted again.
 * `knows`: it lost only the outcome. `says`: which accounts have the order, and in which state; the others have none.
 * `isTold`: the outcome was published. `first`: the ledger knows only the first attempt, at the current account.
 * `controls`: the current account finds an order that is known to exist.
 */
async function world(
  t: TestContext,
  {
    knows = false,
    says = {},
    isTold = true,
    first = null,
    controls = true,
  }: { knows?: boolean; says?: Says; isTold?: boolean; first?: First | null; controls?: boolean } = {},
) {
  const { ledger, config, codec } = await testLedger(t)
  const { db } = ledger
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h1', feeEstimate: 0n })
  await accepted(ledger, config, [command('p')])
  async function sentTo(account: typeof ACCOUNT): Promise<number> {
    await setBalance(db, 'acme', 10n ** 12n)
    const { wave } = await claim(ledger, {
      ...{ merchantId: 'acme', atMost: 1, owner: 'me', leaseMs: 60_000, sealing: config.sealing, account },
      ...{ fingerprintKey: config.fingerprintKey, limits: { maxInFlight: 64, ratePerSecond: null } },
    })
    return wave.length
  }
  const load = async (): Promise<Payout> => {
    const keys = [{ merchantId: 'acme', payoutId: 'p' }]
    const [payout] = await db.transaction('test', (tx) => lockPayouts(tx, keys))
    return payout ?? assert.fail('there is no payout')
  }
  const move = async (decide: (payout: Payout) => Decision) => {
    const decision = decide(await load())
    await db.transaction('test', (tx) => storeDecisions(tx, ledger, [decision]))
  }
  const becomes = (state: State, fields: PayoutFields) =>
    move((payout) => change(payout, become(payout, state, fields), 'APPLY', null))
  if (first) {
    await db.run(inForce, { settingsHash: CURRENT.settingsHash })
    assert.equal(await sentTo(CURRENT), 1)
    await becomes('queued', { reason: 'ECONNREFUSED', accountId: null, ready: true })
    await db.run(inForce, { settingsHash: FORMER.settingsHash })
  }
  assert.equal(await sentTo(FORMER), 1)
  if (first?.isUnderWay) await becomes('processing', { agentpayOrderId: 'AP-former' })
  const told = isTold ? await db.run(outbox, {}) : []
  if (first) {
    await db.run(firstAttempt, first)
    for (const [state, fields] of first.since ?? []) await becomes(state, fields)
  } else for (const statement of knows ? [unknownAtFormer, back] : [restored]) await db.run(statement, {})
  const [raised] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
  assert.ok(raised)
  await listOpen(db, raised)
  await readBackPublished(['acme'], {
    ...{ ledger, codec },
    async readTopic(topic, onRecord) {
      for (const { key, value } of told.filter((each) => each.topic === topic))
        await onRecord({ key: Buffer.from(key), value } as IncomingRecord)
    },
  })
  await listOpen(db, raised)
  const [payout] = await payoutsOf(ledger)
  assert.ok(payout)
  const reportOf = (accountId: string, status: OrderReport['status']): OrderReport => ({
    ...{
      mchOrderNo: payout.orderNo,
      amount: command('p').amount,
      status,
      agentpayOrderId: `AP-${accountId}`,
    },
    ...{ fee: null, utr: null, errorMessage: null, exchange: {} },
  })
  let asked = 0
  const at = ({ accountId, settingsHash }: typeof ACCOUNT, queryPolicy: typeof TABLE): AskedAccount => ({
    ...{ accountId, settingsHash, queryPolicy, leaseMs: 0 },
    async query(): Promise<QueryAnswer> {
      asked++
      const status = says[accountId]
      if (status) return { kind: 'found', report: reportOf(accountId, status) }
      return { kind: 'not-found', exchange: {} }
    },
    presenceCheck: { found: () => undefined, holds: async () => controls || accountId === 'former' },
  })
  /** What `payoutd recover` asks these accounts, the current one first. */
  const ask = (by: Fence, accounts: readonly [AskedAccount, ...AskedAccount[]], missing: string[]) =>
    queryOpen(by, {
      ...{ ledger, decisions: DECISIONS, ratePerSecond: 1_000, who: WHO, clock: systemClock },
      ...{ accounts, missing },
      ...{ signal: new AbortController().signal, onProgress: () => undefined, onWait: () => undefined },
    })
  return {
    ...{ db, sentTo, move },
    asked: () => asked,
    /** Another payout, which the current account has paid. */
    async knowAtCurrent() {
      await accepted(ledger, config, [command('known')])
      await db.run(paidAtCurrent, {})
    },
    /** `payoutd recover` with settings that have these accounts, up to the point where it would take the fence down. */
    async askBy(...accounts: [Asked, ...Asked[]]): Promise<() => Promise<string>> {
      const settings = accounts.map(({ settingsHash }) => settingsHash)
      const [fenced] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n, settings }], WHO)
      assert.ok(fenced)
      const [current, ...former] = accounts.map(({ queryPolicy = TABLE, ...account }) =>
        at(account, queryPolicy),
      )
      await ask(fenced, [current as AskedAccount, ...former], [])
      return async () => (await lowerAfterRestore(fenced, WHO, ledger)).kind
    },
    adopt: ({ accountId, settingsHash }: typeof ACCOUNT) =>
      adoptSettings(
        db,
        { merchantId: 'acme', account: { ...SETTINGS, accountId, settingsHash }, feeEstimate: paise(0n) },
        WHO,
        async () => null,
      ),
    /** `former`: null if the settings lack it. */
    async recover(current: typeof TABLE, former: typeof TABLE | null): Promise<void> {
      const accounts = [at(CURRENT, current), ...(former ? [at(FORMER, former)] : [])] as const
      await ask(raised, accounts as never, former ? [] : ['account former'])
    },
    takeDown: () => lowerAfterRestore(raised, WHO, ledger),
    /** Sends it again at the current account, on that account's promise. */
    async decide() {
      const payout = await load()
      const terms = { ...CURRENT, ...CURRENT.promises, deadlineMs: 60_000 }
      const attempt = payout.attempt
      const again = { kind: 'resend', attempt, confirmedAbsentBy: null, deadline: null } as const
      return resolve(payout, { ...again, cancelRequest: null, terms }, WHO, systemClock.now())
    },
    state: async () => (await payoutsOf(ledger)).map(({ state, reason }) => [state, reason])[0],
  }
}

test('the promise of the current account does not resend a payout that may have been sent to another', async (t) => {
  const { recover, takeDown, state, sentTo } = await world(t)
  await recover({ ...TABLE, resendWhenAbsent: true }, TABLE)
  assert.equal((await takeDown()).kind, 'recovered')
  assert.deepEqual(await state(), ['review', 'proved-absent'])
  assert.equal(await sentTo(CURRENT), 0)
})

test('every account must report that it has no such order as often as the strictest one requires', async (t) => {
  const { recover, asked, state } = await world(t)
  await recover(TABLE, { ...TABLE, confirmations: 3 })
  assert.equal(asked(), 6)
  assert.deepEqual(await state(), ['review', 'proved-absent'])
})

test('a recovery concludes nothing once other settings are in force', async (t) => {
  const { db, recover, takeDown } = await world(t)
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h3', feeEstimate: 0n })
  await assert.rejects(
    recover(TABLE, TABLE),
    /somebody put other gateway settings of acme into force meanwhile/,
  )
  assert.equal((await takeDown()).kind, 'open')
})

for (const says of [{ current: 'processing' }, { former: 'failed', current: 'processing' }] as const) {
  test(`the order of a lost attempt is found at another account than the known one: ${JSON.stringify(says)}`, async (t) => {
    const { recover, state } = await world(t, { knows: true, says })
    await recover(TABLE, TABLE)
    assert.deepEqual(await state(), ['processing', null])
  })
}

test('the account that is known to have it is asked first, and the others unless it has paid', async (t) => {
  for (const [former, asked] of [
    ['success', 1],
    ['processing', 2],
  ] as const) {
    const alive = await world(t, { knows: true, says: { former } })
    await alive.recover(TABLE, TABLE)
    assert.equal(alive.asked(), asked)
  }
  const failed = await world(t, { knows: true, says: { former: 'failed' } })
  await failed.recover(TABLE, TABLE)
  assert.equal(failed.asked(), 2)
  assert.deepEqual(await failed.state(), ['review', 'failed-in-doubt'])
})

test('an order that is known to be at an account which the settings lack is looked up at the others', async (t) => {
  const alive = await world(t, { knows: true, says: { current: 'processing' } })
  await alive.recover(TABLE, null)
  assert.deepEqual(await alive.state(), ['processing', null])
  const failed = await world(t, { knows: true, says: { current: 'failed' } })
  await failed.recover(TABLE, null)
  assert.deepEqual(await failed.state(), ['review', 'account-unknown'])
  const absent = await world(t, { knows: true })
  await absent.recover({ ...TABLE, confirmations: 2 }, null)
  assert.equal(absent.asked(), 2)
  assert.deepEqual(await absent.state(), ['review', 'account-unknown'])
})

const LOST = { isTold: false, says: { former: 'processing' } } as const

test('settings that are adopted during a recovery make it ask anew, because nobody asked by them', async (t) => {
  const { askBy, adopt, state, sentTo } = await world(t, LOST)
  const takeDown = await askBy(CURRENT)
  await adopt(FORMER)
  assert.equal(await takeDown(), 'open')
  const takeDownAgain = await askBy(FORMER, CURRENT)
  assert.deepEqual(await state(), ['processing', null])
  assert.equal(await takeDownAgain(), 'recovered')
  assert.equal(await sentTo(FORMER), 0)
})

test('an account that joins the settings after a recovery was interrupted is asked about everything', async (t) => {
  const { askBy, state, asked } = await world(t, LOST)
  const takeDown = await askBy(CURRENT)
  await askBy(CURRENT)
  assert.equal(asked(), 1)
  await askBy(CURRENT, FORMER)
  assert.deepEqual(await state(), ['processing', null])
  assert.equal(await takeDown(), 'open')
})

for (const state of ['submitting', 'unknown'] as const) {
  const promising = { ...TABLE, resendWhenAbsent: true }
  const first = { state, isUnderWay: false }

  test(`a payout that is ${state} at the current account, and was sent to another since, is left to no promise: the settings lack that one`, async (t) => {
    const absent = await world(t, { first })
    await absent.recover(promising, null)
    assert.deepEqual(await absent.state(), ['review', 'account-unknown'])
    const failed = await world(t, { first, says: { current: 'failed' } })
    await failed.recover(promising, null)
    assert.deepEqual(await failed.state(), ['review', 'failed-in-doubt'])
  })

  test(`a payout that is ${state} at the current account, and was sent to another since, is left to no promise: neither has it`, async (t) => {
    const { recover, state, decide } = await world(t, { first })
    await recover(promising, TABLE)
    assert.deepEqual(await state(), ['review', 'proved-absent'])
    assert.deepEqual(await decide(), { refused: { kind: 'account-not-known' } })
  })

  test(`a payout that is ${state}, and was sent once more according to an answer, is left to no promise if it is not found`, async (t) => {
    const { askBy, state, decide, move } = await world(t, { first, isTold: false })
    await move((payout) => neverSent(payout, 'APPLY', 'attempt 2 was answered (accepted)', null, 'attempt'))
    await askBy({ ...CURRENT, queryPolicy: promising })
    assert.deepEqual(await state(), ['review', 'proved-absent'])
    assert.deepEqual(await decide(), { refused: { kind: 'account-not-known' } })
  })

  test(`a payout that is ${state}, was published as accepted since, and is not found is left to no promise`, async (t) => {
    const { askBy, state, decide } = await world(t, { first: { state: first.state, isUnderWay: true } })
    await askBy({ ...CURRENT, queryPolicy: promising })
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
    ['that have no such order', TABLE],
  ] as const)
    test(`a payout that was published as sent to another account, and lost, before ${what}, is left to no promise, by settings ${where}`, async (t) => {
      const { recover, decide, takeDown, state } = await world(t, {
        first: { state: 'submitting', isUnderWay: false, since },
      })
      await recover({ ...TABLE, resendWhenAbsent: true }, former)
      assert.equal((await state())?.[0], 'review')
      assert.equal((await takeDown()).kind, 'recovered')
      const { refused } = (await decide()) as { refused: ResolveRefusal }
      assert.match(refused.kind, /account-not-known|gateway-had-it/)
    })

test('"not found" counts without a presence check only if payoutd knows no order to check with', async (t) => {
  const blank = await world(t, { knows: true, controls: false })
  await blank.recover(TABLE, TABLE)
  assert.equal((await blank.takeDown()).kind, 'recovered')
  const used = await world(t, { knows: true, controls: false })
  await used.knowAtCurrent()
  await used.recover(TABLE, TABLE)
  assert.equal((await used.takeDown()).kind, 'open')
})
