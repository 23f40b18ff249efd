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

/** How payoutd calls one merchant's gateway for payins. Neither call ever rejects. */
export type Collector = {
  /** The account for new payins. */
  accountId: string
  /** The hash of the settings that this comes from. */
  settingsHash: string
  /** Longer than a creation can take: when it ends, the result is unknown. */
  leaseMs: number
  /** The longest that a call may take from its first byte; less than the lease. */
  sendTimeoutMs: number
  /** How long payoutd asks about a payin that nobody pays. */
  expireMs: number
  queryPolicy: QueryPolicy
  /** The client calls `mayStillSend` in the tick that hands over the bytes. */
  create: (order: Omit<PayinOrder, 'notifyUrl'>, mayStillSend: () => boolean) => Promise<PayinCreateAnswer>
  /** By account, former ones included. */
  recover: ReadonlyMap<string, (recovery: PayinRecovery) => Promise<PayinRecoverAnswer>>
}

export type CollectDeps = {
  ledger: Ledger
  collectors: ReadonlyMap<string, Collector>
  fingerprintKey: KeyObject
  clock: Clock
  log: Logger
}

/** A requested payin; `traceparent` is the caller's, and its results carry it. */
export type WantedPayin = {
  merchantId: string
  idempotencyKey: string
  request: PayinRequest
  traceparent: string | null
}

/** The person behind a command, whom the history records; undefined: a program, through the API. */
type Who = Decided | undefined

/**
 * `conflict`: this idempotency key already stands for another request. `other-settings`: this process has other settings than
 * those in force, so it sent nothing.
 */
export type Created =
  | { kind: 'created' | 'repeated'; payin: Payin }
  | { kind: 'conflict'; payinId: string }
  | { kind: 'other-settings' }

/**
 * Asks a merchant's gateway for a payin, once. It commits the intent before the call, and a repeat of the request under the same
 * key gets the payin as it is by then. A creation without an answer is unknown, and payoutd asks about it. Rejects if it cannot
 * reach the ledger: then the caller may repeat the request.
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

/** The settings in force define the meaning of a code. Under others a refusal ends nothing, and payoutd asks the gateway. */
const byOtherSettings = (answer: PayinCreateAnswer): PayinCreateAnswer =>
  answer.kind === 'refused' || answer.kind === 'retry-later'
    ? { kind: 'unknown', reason: 'unlisted-code', exchange: answer.exchange }
    : answer

/** Whether these settings are the ones in force. */
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
 * `impossible`: it is paid already, the gateway has named no order that could be recovered, or its account is not in the
 * settings.
 */
export type UtrRecovery =
  | { kind: 'no-such-payin' }
  | { kind: 'impossible'; payin: Payin }
  /** This process has other settings than those in force: it sent nothing. */
  | { kind: 'other-settings' }
  | { kind: 'answered'; answer: PayinRecoverAnswer; payin: Payin }

/**
 * Asks the gateway to find the payment with this UTR and to count it for a payin, even one that failed or expired. The history
 * records the request before it is sent, and then its answer. Whether the payin is paid, a callback or a query will show.
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

/** Stores, in a transaction of this name, what `decide` makes of an existing payin, and returns the payin as it is then. */
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
