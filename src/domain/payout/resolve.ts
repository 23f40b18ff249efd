import type { Instant } from '../instant.ts'
import { scrub, scrubName, words } from '../mask.ts'
import { END_PUBLISHED } from '../recovery/published-otherwise.ts'
import type { GatewayPromises } from './next-query.ts'
import type { Change, Payout } from './payout.ts'
import { withdrawnCode } from './send-again.ts'
import { isOfPayment, mayBePaidByAnother } from './several-orders.ts'
import type { State } from './states.ts'
import { become, type PayoutFields, wasNeverSent } from './transition.ts'

/** What a person decides about a payout in review. */
export type Resolution =
  /** `utr`: the bank's reference, which proves that the money left. */
  | { kind: 'paid'; utr: string }
  /** `attempt`: the latest that the person knows of; undefined: the one that payoutd showed. */
  | { kind: 'failed'; attempt?: number }
  /**
   * Send it again under the same order number. `attempt`: the latest that the person knows of. `confirmedAbsentBy`: who at
   * the gateway said that it has no such order. `deadline`: a new one; null keeps the current one if it is still ahead.
   * `cancelRequest`: the request to cancel that payoutd showed, and that the person overrules.
   */
  | {
      kind: 'resend'
      attempt: number
      confirmedAbsentBy: string | null
      deadline: Instant | null
      cancelRequest: string | null
      terms: ResendTerms
    }

/** Why a payout is queued after a person sent it again. */
export const RESENT = 'resent'

/** A named person, and why they decide so. */
export type Decided = { by: string; reason: string }

/** What payoutd shows a person who decides about a payout. */
export type ShownPayout = Pick<Payout, (typeof SHOWN)[number]>

const SHOWN = [
  'version',
  'attempt',
  'accountId',
  'doubted',
  'refusal',
  'cancelRequest',
  'orderShown',
  'orderBesides',
  'agentpayOrderId',
  'utr',
] as const

export type ResendTerms = GatewayPromises & {
  /** The gateway account that payoutd would send it to. */
  accountId: string
  /** The hash of the settings that these terms come from. */
  settingsHash: string
  /** The merchant's usual deadline, in ms from now; used if the payout's own has passed. */
  deadlineMs: number
}

/** Why payoutd does not carry out a decision. */
export type ResolveRefusal =
  | { kind: 'not-in-review'; state: State }
  /** It has changed since payoutd showed it to the person. */
  | { kind: 'moved'; shown: ShownPayout; now: ShownPayout }
  /** payoutd has sent it since the attempt that the person knows of. */
  | { kind: 'other-attempt'; attempt: number; latest: number }
  /** It was sent again after this attempt and came back to a person since: whoever repeats the decision has not seen why. */
  | { kind: 'resent-before'; attempt: number }
  /** The gateway gave the order a number, or showed in another way that it had it. */
  | { kind: 'gateway-had-it'; agentpayOrderId: string | null }
  /** payoutd sent it to another account, which may have it. */
  | { kind: 'sent-elsewhere'; accountId: string }
  /** The gateway may pay the same order number twice. */
  | { kind: 'duplicates-not-refused' }
  /** An attempt may be alive at an unknown account. */
  | { kind: 'account-not-known' }
  /** The ledger was set back: it may have been sent since, and a recovery asks nobody about what has ended. */
  | { kind: 'fenced' }
  /** The process that decides has other settings than those in force. */
  | { kind: 'other-settings' }
  | { kind: 'deadline-over'; deadline: Instant }
  /** Somebody else asked to cancel it, and the person who decides was not shown that. */
  | { kind: 'to-be-cancelled'; cancelRequest: string }

/** What a UTR can be (gateway contract, "Limits": String(30)). */
export const isUtr = (text: string): boolean => /^[A-Za-z0-9-]{1,30}$/.test(text)

export const shownOf = (payout: Payout): ShownPayout =>
  Object.fromEntries(SHOWN.map((field) => [field, payout[field]])) as ShownPayout

/**
 * What a person's decision does to a payout. Only a payout in review waits for a person, and the decision covers only what
 * payoutd showed them; `shown`: null if payoutd showed nothing. `notBefore`: from its command; it holds for a resend too.
 */
export function resolve(
  payout: Payout,
  resolution: Resolution,
  decided: Decided,
  now: Instant,
  shown: ShownPayout | null = null,
  notBefore: Instant | null = null,
): { change: Change } | { refused: ResolveRefusal } {
  if (payout.state !== 'review') return { refused: { kind: 'not-in-review', state: payout.state } }
  if (shown !== null && SHOWN.some((field) => shown[field] !== payout[field])) {
    return { refused: { kind: 'moved', shown, now: shownOf(payout) } }
  }
  if (resolution.kind !== 'paid') {
    const { attempt = payout.attempt } = resolution
    if (attempt !== payout.attempt)
      return { refused: { kind: 'other-attempt', attempt, latest: payout.attempt } }
  }
  const reason = scrub(decided.reason)
  const move = (state: State, fields: PayoutFields, what: string) => ({
    change: {
      before: payout,
      after: become(payout, state, fields),
      source: 'OPERATOR' as const,
      exchange: { note: `${words(decided)} (${what})` },
    },
  })
  // A ledger that was set back may lack the attempt. The gateway's next report must not look like news of a lost attempt.
  const attempt = Math.max(1, payout.attempt)
  switch (resolution.kind) {
    case 'paid': {
      const { utr } = resolution
      // The order that is known may be another one than was paid, unless a published payment left it known.
      const isUnnamed = mayBePaidByAnother(payout) && !isOfPayment(payout, { agentpayOrderId: null, utr })
      const known = {
        ...(isUnnamed && payout.reason !== END_PUBLISHED && { agentpayOrderId: null, fee: null }),
        ...(isUnnamed && payout.orderBesides && { accountId: null }),
      }
      return move('paid', { attempt, utr, ...known }, `paid, UTR ${utr}`)
    }
    case 'failed': {
      const sent = wasNeverSent(payout) ? {} : { attempt }
      return move('failed', { ...sent, reason, unreported: true }, 'failed')
    }
    case 'resend': {
      const { confirmedAbsentBy, terms } = resolution
      const isScheduled = notBefore !== null && notBefore > now
      const from = isScheduled ? notBefore : now
      const deadline = resolution.deadline ?? aheadOf(from, payout.deadline, terms.deadlineMs)
      const { cancelRequest } = payout
      if (cancelRequest !== null && cancelRequest !== resolution.cancelRequest)
        return { refused: { kind: 'to-be-cancelled', cancelRequest } }
      const refused = risk(payout, confirmedAbsentBy, deadline, terms, from)
      if (refused) return { refused }
      // Fields of an order that does not exist belong to no order; the next answer fills them again.
      const fresh = {
        agentpayOrderId: null,
        fee: null,
        utr: null,
        ...(confirmedAbsentBy === null ? {} : { orderShown: false, orderBesides: false }),
        ...whatMayBeAlive(payout, confirmedAbsentBy, terms),
      }
      const fields = {
        ...fresh,
        cancelRequest: null,
        reason: RESENT,
        ready: !isScheduled,
        deadline,
        dueAt: isScheduled ? from : deadline,
      }
      return move('queued', fields, resendInWords(payout, confirmedAbsentBy, deadline))
    }
  }
}

/**
 * A person who says that another account has no such order says that none is alive there. If the ledger lost the attempt,
 * nobody knows its account.
 */
function whatMayBeAlive(
  { accountId, doubted, unpaidCodes }: Payout,
  confirmedAbsentBy: string | null,
  terms: ResendTerms,
): PayoutFields {
  const absenceConfirmed = confirmedAbsentBy !== null
  const word = { absenceConfirmed, unpaidCodes: absenceConfirmed ? null : unpaidCodes }
  if (accountId === terms.accountId) return { ...word, accountId, doubted: true }
  return { ...word, accountId: null, doubted: doubted && accountId === null, turnedAway: true }
}

const aheadOf = (from: Instant, deadline: Instant, usualMs: number): Instant =>
  deadline > from ? deadline : from + usualMs

function risk(
  payout: Payout,
  confirmedAbsentBy: string | null,
  deadline: Instant,
  terms: ResendTerms,
  from: Instant,
): ResolveRefusal | null {
  if (confirmedAbsentBy === null) {
    const { agentpayOrderId, orderShown, orderBesides, accountId, doubted } = payout
    if (agentpayOrderId !== null || orderShown || orderBesides)
      return { kind: 'gateway-had-it', agentpayOrderId }
    if (accountId !== null && accountId !== terms.accountId) return { kind: 'sent-elsewhere', accountId }
    if (doubted && accountId === null) return { kind: 'account-not-known' }
    if (!terms.duplicatesRefused || withdrawnCode(payout, terms) !== null)
      return { kind: 'duplicates-not-refused' }
  }
  return deadline > from ? null : { kind: 'deadline-over', deadline }
}

function resendInWords(payout: Payout, confirmedAbsentBy: string | null, deadline: Instant): string {
  const { agentpayOrderId } = payout
  return [
    'sent again under the same order number',
    ...(payout.cancelRequest === null ? [] : ['though it was to be cancelled']),
    ...(confirmedAbsentBy === null
      ? []
      : [`${scrubName(confirmedAbsentBy)} confirmed that the gateway has no such order`]),
    ...(agentpayOrderId === null ? [] : [`which it had called ${agentpayOrderId}`]),
    ...(deadline === payout.deadline ? [] : [`deadline ${new Date(deadline).toISOString()}`]),
  ].join(', ')
}
