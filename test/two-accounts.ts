import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { command } from '../src/domain/commands/command.fixture.ts'
import { DECISIONS } from '../src/domain/decisions.ts'
import type { OrderReport } from '../src/domain/evidence.ts'
import type { ApplyAnswer, QueryAnswer } from '../src/domain/gateway-answers.ts'
import { paise } from '../src/domain/money.ts'
import { QUERY_POLICY } from '../src/domain/payout/payout.fixture.ts'
import type { Decision, Payout } from '../src/domain/payout/payout.ts'
import { resolve } from '../src/domain/payout/resolve.ts'
import type { State } from '../src/domain/payout/states.ts'
import { become, change, type PayoutFields } from '../src/domain/payout/transition.ts'
import { lockPayouts, storeDecisions } from '../src/ledger/ledger.ts'
import type { Fence } from '../src/ledger/sql/fence.ts'
import { adoptSettings } from '../src/operators/gateway-settings.ts'
import type { AskedAccount } from '../src/operators/recovery/accounts.ts'
import { recallAnomalies } from '../src/operators/recovery/anomalies.ts'
import { type ReadBackDeps, readBackPublished } from '../src/operators/recovery/read-back-published.ts'
import { fence, listOpen, lowerAfterRecovery, queryOpen } from '../src/operators/recovery/recovery.ts'
import { resolvePayout } from '../src/operators/resolve-payout.ts'
import { reversePayout } from '../src/operators/reversal.ts'
import type { TopicRecord } from '../src/platform/kafka/records.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { claim } from '../src/stages/dispatch/claim.ts'
import { recordAnswers } from '../src/stages/dispatch/record-answers.ts'
import { applyEvidenceBatch } from '../src/stages/outcomes/outcomes.ts'
import { ACCOUNT, accepted, attemptOf, payoutsOf, setBalance, testLedger, upsertMerchant } from './ledger.ts'
import { outboxMessages } from './outbox-messages.ts'
import { recoveryDeps } from './recovery-deps.ts'

const KEY = { merchantId: 'acme', payoutId: 'p' }
export const WHO = { by: 'asha', reason: 'restored' }
export const POLICY = { ...QUERY_POLICY }
export const PROMISING = { ...POLICY, duplicatesRefused: true }
export const FORMER = { ...ACCOUNT, accountId: 'former', settingsHash: 'h1' }
export const CURRENT = { ...ACCOUNT, accountId: 'current', settingsHash: 'h2' }
const SETTINGS = {
  ...{ baseUrl: 'https://gateway.example', mchId: '1000100' },
  ...{ keyFingerprint: 'k', dialectName: 'sandbox' },
}

type Written = { topic: string; key: string; value: Buffer }
const outbox = sql<object, Written>`
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

const addSettings = sql<{ accountId: string; settingsHash: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, '', '', '', '')`
const makeReady = sql<object>`update payouts set ready = true, due_at = deadline where state = 'queued'`
const known = sql<object, { state: State; accountId: string | null; agentpayOrderId: string | null }>`
  select state, account_id, agentpay_order_id from payouts where payout_id = 'p'`

type Says = Record<string, OrderReport['status'] | 'nothing'>
const LATER: ApplyAnswer = {
  ...{ kind: 'retry-later', code: 'LATER', message: '', balanceShort: false },
  exchange: {},
}
type Asked = typeof ACCOUNT & { queryPolicy?: typeof POLICY }
/**
 * `isUnderWay`: the next attempt was published as accepted. `isPaid`: a person's word that it was paid was published. `since`: what
 * the ledger did since then.
 */
type First = {
  state: 'submitting' | 'unknown'
  isUnderWay: boolean
  isPaid?: boolean
  since?: readonly (readonly [State, PayoutFields])[]
}

/**
 * `p` was sent to the former account, and the ledger lost that: it was restored, and the current account was adopted again.
 * `knows`: it lost only the outcome. `isLater`: "later" was answered, which no query has confirmed; the former account stays in
 * force. `says`: which accounts have the order, and in which state, or answer nothing; the others have none. `isNameless`: the
 * former account reports it without its number.
 * `isTold`: the outcome was published. `first`: the ledger knows only the first attempt, at the current account.
 * `controls`: the current account finds an order that is known to exist.
 */
export async function twoAccounts(
  t: TestContext,
  {
    knows = false,
    isLater = false,
    isNameless = false,
    says = {},
    isTold = true,
    first = null,
    controls = true,
  }: {
    knows?: boolean
    isLater?: boolean
    says?: Says
    isNameless?: boolean
    isTold?: boolean
    first?: First | null
    controls?: boolean
  } = {},
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
    const [payout] = await db.transaction('test', (tx) => lockPayouts(tx, [KEY]))
    return payout ?? assert.fail('there is no payout')
  }
  const move = async (decide: (payout: Payout) => Decision) => {
    const decision = decide(await load())
    await db.transaction('test', (tx) => storeDecisions(tx, ledger, [decision]))
  }
  const becomes = (state: State, fields: PayoutFields) =>
    move((payout) => change(payout, become(payout, state, fields), 'APPLY', null))
  const deps = {
    ...{ ledger, decisions: DECISIONS, queryPolicies: new Map([['acme', PROMISING]]), log: silentLogger },
    counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
  }
  const answer = async (said: ApplyAnswer) =>
    recordAnswers([{ ...(await attemptOf(ledger, 'p', 1)), answer: said, tell: false }], deps)
  const callItPaid = (utr: string) =>
    resolvePayout({ ...KEY, ...WHO, resolution: { kind: 'paid', utr }, shown: null }, ledger)
  const topics = (written: readonly Written[]): ReadBackDeps => ({
    ...{ ledger, codec },
    async readTopic(topic, onRecord) {
      for (const { key, value } of written.filter((each) => each.topic === topic))
        await onRecord({ key: Buffer.from(key), value } as TopicRecord)
    },
  })
  if (first) {
    await db.run(inForce, { settingsHash: CURRENT.settingsHash })
    assert.equal(await sentTo(CURRENT), 1)
    await becomes('queued', { reason: 'ECONNREFUSED', accountId: null, ready: true })
    await db.run(inForce, { settingsHash: FORMER.settingsHash })
  }
  assert.equal(await sentTo(FORMER), 1)
  if (first?.isUnderWay) await becomes('processing', { agentpayOrderId: 'AP-former' })
  if (first?.isPaid) {
    await becomes('unknown', { reason: 'timeout' })
    await becomes('review', { reason: 'expired' })
    assert.equal((await callItPaid('632611200001')).kind, 'resolved')
  }
  if (isLater) await answer(LATER)
  const told = isTold ? await db.run(outbox, {}) : []
  if (first) {
    await db.run(firstAttempt, first)
    for (const [state, fields] of first.since ?? []) await becomes(state, fields)
  } else for (const statement of knows ? [unknownAtFormer, back] : [restored]) await db.run(statement, {})
  if (isLater) await db.run(inForce, { settingsHash: FORMER.settingsHash })
  const [raised] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
  assert.ok(raised)
  await listOpen(db, raised)
  await readBackPublished(['acme'], topics(told))
  await listOpen(db, raised)
  const [payout] = await payoutsOf(ledger)
  assert.ok(payout)
  const reportOf = (accountId: string, status: OrderReport['status']): OrderReport => ({
    ...{
      mchOrderNo: payout.orderNo,
      amount: command('p').amount,
      status,
      agentpayOrderId: isNameless && accountId === 'former' ? null : `AP-${accountId}`,
    },
    ...{ fee: null, utr: null, errorMessage: null, exchange: {} },
  })
  let asked = 0
  const at = (
    { accountId, baseUrl, settingsHash }: typeof ACCOUNT,
    queryPolicy: typeof POLICY,
  ): AskedAccount => ({
    ...{ accountId, baseUrl, settingsHash, queryPolicy, leaseMs: 0 },
    async query(): Promise<QueryAnswer> {
      asked++
      const status = says[accountId]
      if (status === 'nothing') return { kind: 'unknown', reason: 'timeout', exchange: {} }
      if (status) return { kind: 'found', report: reportOf(accountId, status) }
      return { kind: 'not-found', exchange: {} }
    },
    presenceCheck: { found: () => undefined, holds: async () => controls || accountId === 'former' },
  })
  /** What `payoutd recover` asks these accounts, the current one first. */
  const ask = (by: Fence, accounts: readonly [AskedAccount, ...AskedAccount[]], missing: string[]) =>
    queryOpen(by, {
      ...{ ...recoveryDeps(), ledger, who: WHO, accounts },
      missing: new Map(missing.map((accountId) => [accountId, accountId])),
    })
  return {
    ...{ db, sentTo, move, answer, callItPaid },
    /** payoutd knows both accounts, so that it can tell whether an attempt was made at one. */
    async knowBoth() {
      for (const account of [FORMER, CURRENT]) await db.run(addSettings, account)
    },
    /** A callback of an account, or its answer to a query of payoutd. */
    async hear(
      source: 'CALLBACK' | 'QUERY',
      { accountId, baseUrl, settingsHash }: typeof ACCOUNT,
      status: OrderReport['status'],
      fields: Partial<OrderReport> = {},
    ) {
      const report = { ...reportOf(accountId, status), ...fields }
      const about = { merchantId: 'acme', mchOrderNo: report.mchOrderNo }
      const asked = { askedAt: systemClock.now(), presence: true, queryPolicy: PROMISING }
      const found = { kind: 'found', report } as const
      const evidence =
        source === 'CALLBACK'
          ? { ...about, source, report, accountIds: [accountId] }
          : { ...about, source, answer: found, accountId, baseUrl, settingsHash, ...asked }
      await applyEvidenceBatch([evidence], deps)
    },
    /** As `payoutd recover` does, from all that was published since. */
    recall: async () => recallAnomalies(['acme'], topics(await db.run(outbox, {}))),
    reverse: async () => (await reversePayout({ ...KEY, ...WHO, anomalyId: null, shown: null }, ledger)).kind,
    makeReady: () => db.run(makeReady, {}),
    known: async () => (await db.run(known, {}))[0],
    published: async () => (await db.run(outbox, {})).filter(({ topic }) => topic === ledger.topics.results),
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
      const [current, ...former] = accounts.map(({ queryPolicy = POLICY, ...account }) =>
        at(account, queryPolicy),
      )
      await ask(fenced, [current as AskedAccount, ...former], [])
      return async () => (await lowerAfterRecovery(fenced, WHO, ledger)).kind
    },
    adopt: ({ accountId, settingsHash }: typeof ACCOUNT) =>
      adoptSettings(
        db,
        {
          merchantId: 'acme',
          account: { ...SETTINGS, accountId, settingsHash },
          former: [],
          feeEstimate: paise(0n),
        },
        WHO,
        async () => null,
      ),
    /** `former`: null if the settings lack it. */
    async recover(
      current: typeof POLICY,
      former: typeof POLICY | null,
      missing = former ? [] : ['former'],
    ): Promise<void> {
      const accounts = [at(CURRENT, current), ...(former ? [at(FORMER, former)] : [])] as const
      await ask(raised, accounts as never, missing)
    },
    takeDown: () => lowerAfterRecovery(raised, WHO, ledger),
    /** Sends it again at the current account, or another one, on that account's promise. */
    async decide(account = CURRENT) {
      const payout = await load()
      const terms = { ...account, ...account.promises, deadlineMs: 60_000 }
      const attempt = payout.attempt
      const again = { kind: 'resend', attempt, confirmedAbsentBy: null, deadline: null } as const
      return resolve(payout, { ...again, cancelRequest: null, terms }, WHO, systemClock.now())
    },
    state: async () => (await payoutsOf(ledger)).map(({ state, reason }) => [state, reason])[0],
  }
}
