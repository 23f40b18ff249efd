import { isDeepStrictEqual } from 'node:util'
import { saidAgainst } from '../domain/anomaly-details.ts'
import type { PayoutKey } from '../domain/identifiers.ts'
import { scrubName } from '../domain/mask.ts'
import type { Change, Payout } from '../domain/payout/payout.ts'
import {
  type Decided,
  type Resolution,
  type ResolveRefusal,
  resolve,
  type ShownPayout,
  shownOf,
} from '../domain/payout/resolve.ts'
import { recordAct } from '../ledger/acts.ts'
import { fencedMerchants, type Ledger, lockPayouts, storeDecisions } from '../ledger/ledger.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import { NO_OTHER_PAYMENTS, type OtherPayments, otherPaymentsOfOne } from '../queries/other-payments.ts'
import { reportedContradictions } from '../queries/sql/payouts/contradictions.ts'
import { notBeforeOf, otherWithUtr, resentSinceAttempt } from '../queries/sql/payouts/find.ts'
import { lockUtr } from './sql/lock-utr.ts'
import { takeSendTurn } from './sql/send-turns.ts'
import { countEvidence, statesIn } from './store-decisions.ts'
import { comparable, type LookForOthers, unseenOf } from './unseen-payments.ts'

/**
 * What a person is shown of a payout that they decide about: itself, how much evidence there is, and before it is sent again what else
 * pays the same.
 */
type Shown = ShownPayout & { evidenceCount: number; otherPayments: OtherPayments }

/** `lookForOthers`: for a resend, how to look for other payments of the same. `shown`: what the operator was shown; null: nobody was asked. */
export type ResolveRequest = PayoutKey &
  Decided & { resolution: Resolution; lookForOthers?: LookForOthers; shown: Shown | null }

/**
 * The result of a person's decision. `shown`: the payout before it. `contradictedBy`: anomalies in which the gateway reports
 * another end for a payout that has ended. `unseen`: these others pay the same, and nobody has been shown them. `utr-taken`: another payout has the UTR. `unknown`: nobody knows the payout.
 */
export type ResolveOutcome =
  | { kind: 'resolved'; shown: Shown; payout: Payout }
  | { kind: 'refused'; refusal: ResolveRefusal; contradictedBy: string[] }
  | { kind: 'unseen'; otherPayments: OtherPayments }
  | { kind: 'utr-taken'; utr: string; takenBy: PayoutKey }
  | { kind: 'unknown' }

/** Decides, and stores state, history and messages together. */
export function resolvePayout(request: ResolveRequest, ledger: Ledger): Promise<ResolveOutcome> {
  return ledger.db.transaction('resolve payout', async (tx): Promise<ResolveOutcome> => {
    if (request.resolution.kind === 'resend') await tx.run(takeSendTurn, request)
    const { decision, outcome } = await decide(tx, request, { isUnseen: request.shown === null })
    if (decision) {
      await storeDecisions(tx, ledger, [decision])
      const { by, reason, merchantId } = request
      const act = { by, reason, merchantId, ...statesIn([decision.change], confirmedIn(request)) }
      await recordAct(tx, { command: 'payout resolve', ...act })
    }
    return outcome
  })
}

/** Who confirmed that the gateway has no such order: the history expires, the record of the act stays. */
const confirmedIn = ({ resolution }: ResolveRequest): { confirmedAbsentBy?: string } =>
  resolution.kind === 'resend' && resolution.confirmedAbsentBy !== null
    ? { confirmedAbsentBy: scrubName(resolution.confirmedAbsentBy) }
    : {}

/** What `resolvePayout` would do now. Stores nothing. */
export function previewResolve(request: ResolveRequest, db: Database): Promise<ResolveOutcome> {
  return db.transaction(
    'preview of a resolution',
    async (tx) => (await decide(tx, request, { isUnseen: false })).outcome,
  )
}

async function decide(
  tx: Transaction,
  request: ResolveRequest,
  how: { isUnseen: boolean },
): Promise<{ decision: { change: Change } | null; outcome: ResolveOutcome }> {
  const [payout] = await lockPayouts(tx, [request])
  if (!payout) return { decision: null, outcome: { kind: 'unknown' } }
  const { merchantId, payoutId } = payout
  const { lookForOthers } = request
  const otherPayments = lookForOthers
    ? await otherPaymentsOfOne(tx, request, lookForOthers.payPeriod, tx.now)
    : NO_OTHER_PAYMENTS
  const shown = { ...shownOf(payout), evidenceCount: await countEvidence(tx, request), otherPayments }
  const refused = payout.state === 'review' ? await refusalBefore(tx, request, shown, how) : null
  const [{ notBefore } = { notBefore: null }] = await tx.run(notBeforeOf, { merchantId, payoutId })
  const decision = refused
    ? { refused }
    : resolve(payout, request.resolution, request, tx.now, request.shown, notBefore)
  if ('refused' in decision) {
    const against = saidAgainst(payout.state)
    const contradictions = await tx.run(reportedContradictions, { merchantId, payoutId, against })
    const contradictedBy = contradictions.map(({ anomalyId }) => anomalyId)
    return { decision: null, outcome: { kind: 'refused', refusal: decision.refused, contradictedBy } }
  }
  const unseen = unseenOf(otherPayments, lookForOthers?.known ?? null, new Set())
  if (unseen) return { decision: null, outcome: { kind: 'unseen', otherPayments: unseen } }
  const { after } = decision.change
  if (after.state === 'paid' && after.utr !== null) {
    const { utr } = after
    await tx.run(lockUtr, { utr })
    const [takenBy] = await tx.run(otherWithUtr, { merchantId, payoutId, utr })
    if (takenBy) return { decision: null, outcome: { kind: 'utr-taken', utr, takenBy } }
  }
  return { decision, outcome: { kind: 'resolved', shown, payout: after } }
}

/**
 * Checks what was reported since, and what is known of the merchant. A resend relies on the promises of the settings in force.
 */
async function refusalBefore(
  tx: Transaction,
  { merchantId, payoutId, resolution, shown }: ResolveRequest,
  now: Shown,
  { isUnseen }: { isUnseen: boolean },
): Promise<ResolveRefusal | null> {
  if (
    shown !== null &&
    (shown.evidenceCount !== now.evidenceCount ||
      !isDeepStrictEqual(comparable(shown.otherPayments), comparable(now.otherPayments)))
  )
    return { kind: 'moved', shown, now }
  if (resolution.kind === 'failed')
    return (await fencedMerchants(tx)).has(merchantId) ? { kind: 'fenced' } : null
  if (resolution.kind !== 'resend') return null
  const { attempt } = resolution
  const [resent] = isUnseen ? await tx.run(resentSinceAttempt, { merchantId, payoutId }) : []
  if (resent) return { kind: 'resent-before', attempt }
  const [inForce] = await tx.run(settingsInForce, { merchantIds: [merchantId] })
  return inForce !== undefined && inForce.settingsHash !== resolution.terms.settingsHash
    ? { kind: 'other-settings' }
    : null
}
