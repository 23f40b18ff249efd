import type { KeyObject } from 'node:crypto'
import type { PayinCreateAnswer, PayinRecoverAnswer } from '../domain/payin/gateway-answers.ts'
import type { Payin, PayinDecision } from '../domain/payin/payin.ts'
import { recordCreate } from '../domain/payin/record-create-answer.ts'
import { intendRecovery, recordRecovery } from '../domain/payin/record-recovery-answer.ts'
import type { QueryPolicy } from '../domain/payout/next-query.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import type { PayinOrder } from '../gateway/calls/payin-create.ts'
import type { PayinRecovery } from '../gateway/calls/payin-recovery.ts'
import { recordAct } from '../ledger/acts.ts'
import { keepRefused } from '../ledger/evidence/refused-evidence.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import type { Logger } from '../platform/log.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { type Clock, isBefore, momentAfter, momentOf } from '../platform/running/clock.ts'
import type { CommitName } from '../platform/running/crash-points.ts'
import { payinFingerprint, payinIdFor } from './identifiers.ts'
import type { PayinRequest } from './request.ts'
import { insertPayin, payinWithFingerprint } from './sql/insert.ts'
import { lockPayins, type PayinKey, storeArrival, storePayins } from './store.ts'
import { findPayin } from './story.ts'

/** How one merchant's gateway is asked for payins. Neither call ever rejects. */
export type Collector = {
  /** Where payins are asked for. */
  accountId: string
  /** Of the settings that this is from. */
  settingsHash: string
  /** Longer than a creation can take: when it ends, the result is unknown. */
  leaseMs: number
  /** The longest that a call may take from its first byte on; less than the lease. */
  sendTimeoutMs: number
  /** How long a payin that nobody pays is asked about. */
  expireMs: number
  queryPolicy: QueryPolicy
  /** `mayStillSend` is asked in the tick that hands the bytes over. */
  create: (order: Omit<PayinOrder, 'notifyUrl'>, mayStillSend: () => boolean) => Promise<PayinCreateAnswer>
  /** By account: former ones too. */
  recover: ReadonlyMap<string, (recovery: PayinRecovery) => Promise<PayinRecoverAnswer>>
}

export type CollectDeps = {
  ledger: Ledger
  collectors: ReadonlyMap<string, Collector>
  fingerprintKey: KeyObject
  clock: Clock
  log: Logger
}

/** A payin as it is asked for; `traceparent` is the asker's and stands on its results. */
export type WantedPayin = {
  merchantId: string
  idempotencyKey: string
  request: PayinRequest
  traceparent: string | null
}

/** The person who acts by a command, and is kept on record; undefined: a program asks, by the API. */
type Who = Decided | undefined

/**
 * `conflict`: under this idempotency key something else was asked for. `other-settings`: others are in force than this process
 * has, so that nothing was asked for.
 */
export type Created =
  | { kind: 'created' | 'repeated'; payin: Payin }
  | { kind: 'conflict'; payinId: string }
  | { kind: 'other-settings' }

/**
 * Asks a merchant's gateway for a payin, once: the intent is committed before the call, and whoever repeats the
 * request under its key gets the payin as it is by then. A creation without an answer is unknown, and asked
 * about. Rejects where the ledger cannot be reached: then the request may be repeated.
 */
export async function createPayin(
  { merchantId, idempotencyKey, request, traceparent }: WantedPayin,
  deps: CollectDeps,
  who?: Who,
): Promise<Created> {
  const { ledger, collectors, fingerprintKey, clock } = deps
  const collector = collectors.get(merchantId) as Collector
  const { accountId, settingsHash, create, queryPolicy, leaseMs, sendTimeoutMs, expireMs } = collector
  const key = { merchantId, payinId: payinIdFor(merchantId, idempotencyKey) }
  const fingerprint = payinFingerprint(request, fingerprintKey)
  const { amount, currency } = request
  const wanted = {
    ...key,
    accountId,
    settingsHash,
    fingerprint,
    amount,
    currency,
    traceparent,
    leaseMs,
    expireMs,
  }
  const sendBefore = momentAfter(momentOf(clock), leaseMs - sendTimeoutMs)
  const isNew = await ledger.db.transaction('intend payin', async (tx) => {
    const [payin] = await tx.run(insertPayin, wanted)
    if (!payin) return false
    await storeArrival(tx, payin)
    if (who) {
      const act = { ...who, command: 'payin create', merchantId, subjects: [key.payinId] }
      await recordAct(tx, {
        ...act,
        before: null,
        after: { state: payin.state, amount: String(amount), currency },
      })
    }
    return true
  })
  if (!isNew) return repeated(key, fingerprint, ledger)
  const order = { ...request, mchOrderNo: key.payinId }
  const answer = await create(order, () => isBefore(momentOf(clock), sendBefore))
  const payin = await decided('record creation', key, 'CREATE', deps, async (payin, tx) => {
    const counts = (await isInForce(tx, key, collector)) ? answer : byOtherSettings(answer)
    return recordCreate(payin, counts, queryPolicy, tx.now)
  })
  return { kind: 'created', payin }
}

/** A code means what the settings in force say: by others a refusal ends nothing, and the gateway is asked. */
const byOtherSettings = (answer: PayinCreateAnswer): PayinCreateAnswer =>
  answer.kind === 'refused' || answer.kind === 'retry-later'
    ? { kind: 'unknown', reason: 'unlisted-code', exchange: answer.exchange }
    : answer

/** Whether no other settings than these are in force. */
async function isInForce(
  tx: Transaction,
  { merchantId }: PayinKey,
  { settingsHash }: Pick<Collector, 'settingsHash'>,
): Promise<boolean> {
  const [inForce] = await tx.run(settingsInForce, { merchantIds: [merchantId] })
  return !inForce || inForce.settingsHash === settingsHash
}

async function repeated(key: PayinKey, fingerprint: Buffer, { db }: Ledger): Promise<Created> {
  const [found] = await db.run(payinWithFingerprint, key)
  if (!found) return { kind: 'other-settings' }
  const { fingerprint: before, ...payin } = found
  return before.equals(fingerprint) ? { kind: 'repeated', payin } : { kind: 'conflict', payinId: key.payinId }
}

/**
 * `impossible`: it is paid already, the gateway has not named an order that could be recovered, or its account is not in
 * the settings.
 */
export type UtrRecovery =
  | { kind: 'no-such-payin' }
  | { kind: 'impossible'; payin: Payin }
  /** Others are in force than this process has: nothing was asked. */
  | { kind: 'other-settings' }
  | { kind: 'answered'; answer: PayinRecoverAnswer; payin: Payin }

/**
 * Asks the gateway to find the payment with this UTR and to count it for a payin, also one that failed or
 * expired. That it is asked is in the history before it is sent. What it comes to is kept in the history; whether the payin is paid, a callback or a query tells.
 */
export async function recoverPayin(
  key: PayinKey,
  utr: string,
  deps: Pick<CollectDeps, 'ledger' | 'collectors' | 'log'>,
  who?: Who,
): Promise<UtrRecovery> {
  const { ledger, collectors } = deps
  const collector = collectors.get(key.merchantId) as Collector
  const { recover, queryPolicy, accountId } = collector
  const payin = await findPayin(ledger.db, key)
  if (!payin) return { kind: 'no-such-payin' }
  const { payOrderId, state } = payin
  const ask = recover.get(payin.accountId ?? accountId)
  if (payOrderId === null || state === 'paid' || !ask) return { kind: 'impossible', payin }
  let intended = false
  await decided('intend payin recovery', key, 'RECOVERY', deps, async (payin, tx) => {
    intended = await isInForce(tx, key, collector)
    return intended ? intendRecovery(payin, utr, queryPolicy, tx.now) : { nothing: true }
  })
  if (!intended) return { kind: 'other-settings' }
  if (who) {
    const { merchantId, payinId } = key
    const act = { ...who, command: 'payin recover', merchantId, subjects: [payinId] }
    await recordAct(ledger.db, { ...act, before: { state }, after: { utr } })
  }
  const answer = await ask({ payOrderId, utr })
  const after = await decided('recover payin', key, 'RECOVERY', deps, async (payin, { now }) =>
    recordRecovery(payin, answer, queryPolicy, now),
  )
  return { kind: 'answered', answer, payin: after }
}

/** Stores, by a transaction of this name, what `decide` makes of a payin that exists, and returns it as it is then. */
async function decided(
  name: CommitName,
  key: PayinKey,
  source: 'CREATE' | 'RECOVERY',
  deps: Pick<CollectDeps, 'ledger' | 'log'>,
  decide: (payin: Payin, tx: Transaction) => Promise<PayinDecision>,
): Promise<Payin> {
  const { ledger } = deps
  try {
    return await ledger.db.transaction(name, async (tx) => {
      const [payin] = await lockPayins(tx, [key])
      if (!payin) throw new Error(`payin ${key.merchantId}:${key.payinId} was asked for and is gone`)
      const decision = await decide(payin, tx)
      await storePayins(tx, ledger, [decision])
      return 'change' in decision ? decision.change.after : payin
    })
  } catch (error) {
    await keepRefused(
      error,
      { merchantId: key.merchantId, payoutId: null, orderNo: key.payinId, source },
      deps,
    )
    throw error
  }
}
