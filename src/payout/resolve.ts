import type { Instant } from './instant.ts'
import { scrub, scrubName, words } from './mask.ts'
import type { Change, Payout } from './payout.ts'
import type { State } from './states.ts'
import { become, type Fields } from './transition.ts'

/** What a person decides about a payout in review. */
export type Resolution =
  /** `utr`: the bank's reference, which proves that the money left. */
  | { kind: 'paid'; utr: string }
  | { kind: 'failed' }
  /**
   * Send it again under the same order number. `confirmedAbsentBy`: who of the gateway's people said that they
   * have no such order. `deadline`: a new one; null keeps the one that it has while that lies ahead.
   */
  | { kind: 'resend'; confirmedAbsentBy: string | null; deadline: Instant | null; terms: ResendTerms }

/** A named person, and why they decide so. */
export type Decided = { by: string; reason: string }

export type ResendTerms = {
  /** The gateway account that it would be sent to. */
  accountId: string
  /** The gateway promises that it never pays one order number twice. */
  duplicatesRefused: boolean
  /** The merchant's usual deadline, in ms from now, where the payout's own is over. */
  deadlineMs: number
}

/** Why a decision must not be carried out. */
export type Refusal =
  | { kind: 'not-in-review'; state: State }
  /** The gateway had given the order a number, so it had it. */
  | { kind: 'gateway-had-it'; agentpayOrderId: string }
  /** It was sent to another account, which may have it. */
  | { kind: 'sent-elsewhere'; accountId: string }
  /** The gateway may pay the same order number twice. */
  | { kind: 'duplicates-not-refused' }
  | { kind: 'deadline-over'; deadline: Instant }

/** What a UTR can be (gateway contract, "Limits": String(30)). */
export const isUtr = (text: string): boolean => /^[A-Za-z0-9-]{1,30}$/.test(text)

/** What a person's decision does to a payout. Only one in review waits for a person. */
export function resolve(
  payout: Payout,
  resolution: Resolution,
  decided: Decided,
  now: Instant,
): { change: Change } | { refused: Refusal } {
  if (payout.state !== 'review') return { refused: { kind: 'not-in-review', state: payout.state } }
  const reason = scrub(decided.reason)
  const move = (state: State, fields: Fields, what: string) => ({
    change: {
      before: payout,
      after: become(payout, state, fields),
      source: 'OPERATOR' as const,
      exchange: { note: `${words(decided)} (${what})` },
    },
  })
  switch (resolution.kind) {
    case 'paid':
      return move('paid', { utr: resolution.utr }, `paid, UTR ${resolution.utr}`)
    case 'failed':
      return move('failed', { reason }, 'failed')
    case 'resend': {
      const { confirmedAbsentBy, terms } = resolution
      const deadline = resolution.deadline ?? aheadOf(now, payout.deadline, terms.deadlineMs)
      const refused = risk(payout, confirmedAbsentBy, deadline, terms, now)
      if (refused) return { refused }
      // What the gateway told of an order that is not there belongs to no order; the next answer tells anew.
      const fresh = { agentpayOrderId: null, fee: null, utr: null, ...whatMayBeAlive(payout, terms) }
      const fields = { ...fresh, reason: 'resent', ready: true, deadline, dueAt: deadline }
      return move('queued', fields, resendInWords(payout, confirmedAbsentBy, deadline))
    }
  }
}

/** Whoever said that another account has no such order said that nothing of it is alive there. */
const whatMayBeAlive = ({ accountId }: Payout, terms: ResendTerms): Pick<Payout, 'accountId' | 'doubted'> =>
  accountId === terms.accountId ? { accountId, doubted: true } : { accountId: null, doubted: false }

const aheadOf = (now: Instant, deadline: Instant, usualMs: number): Instant =>
  deadline > now ? deadline : now + usualMs

function risk(
  { agentpayOrderId, accountId }: Payout,
  confirmedAbsentBy: string | null,
  deadline: Instant,
  { duplicatesRefused, ...terms }: ResendTerms,
  now: Instant,
): Refusal | null {
  if (confirmedAbsentBy === null) {
    if (agentpayOrderId !== null) return { kind: 'gateway-had-it', agentpayOrderId }
    if (accountId !== null && accountId !== terms.accountId) return { kind: 'sent-elsewhere', accountId }
    if (!duplicatesRefused) return { kind: 'duplicates-not-refused' }
  }
  return deadline > now ? null : { kind: 'deadline-over', deadline }
}

function resendInWords(payout: Payout, confirmedAbsentBy: string | null, deadline: Instant): string {
  const { agentpayOrderId } = payout
  return [
    'sent again under the same order number',
    ...(confirmedAbsentBy === null
      ? []
      : [`${scrubName(confirmedAbsentBy)} confirmed that the gateway has no such order`]),
    ...(agentpayOrderId === null ? [] : [`which it had called ${agentpayOrderId}`]),
    ...(deadline === payout.deadline ? [] : [`deadline ${new Date(deadline).toISOString()}`]),
  ].join(', ')
}
