import type { KeyObject } from 'node:crypto'
import { fingerprint, orderNumber } from '../../domain/identifiers.ts'
import { formatRupees, type Paise } from '../../domain/money.ts'
import type { GatewayPromises } from '../../domain/payout/next-query.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { withdrawnPromise } from '../../domain/payout/send-again.ts'
import { anomaly, become, change } from '../../domain/payout/transition.ts'
import { openDetails, type PayoutDetails } from '../../ledger/encrypted-details.ts'
import { DoesNotOpen, type SealingKeys } from '../../platform/seal.ts'
import type { Candidate } from './sql/claim.ts'
import { hold } from './undecryptable.ts'

/** A payout with the details needed to send it. */
export type OpenedDetails = { payout: Payout; details: PayoutDetails }

/** A payout that must not be sent as it stands. */
export type Aside =
  /** Its bank details do not open; `keyId` names the key that sealed them. */
  | { why: 'details-sealed'; payout: Payout; keyId: number }
  /**
   * The ledger's data is not what intake stored. `payout` has the amount that intake accepted, and `stood` is the one found in
   * its place; null: the amount was unchanged, or is not known.
   */
  | { why: 'tampered'; payout: Payout; stood: Paise | null }
  /** An attempt may be alive at a gateway account other than the one in force. */
  | { why: 'account-changed'; payout: Payout }
  /** It was queued on a promise of the gateway that is not, or no longer, in force; `note` says which. */
  | { why: 'no-promise'; payout: Payout; note: string }

export type CandidateTerms = {
  sealing: SealingKeys
  fingerprintKey: KeyObject
  /** The gateway account that dispatch would send them to. */
  accountId: string
  promises: GatewayPromises
}

/** Sorts candidates into those that may be sent and those that must not. */
export function sortOut(
  candidates: readonly Candidate[],
  terms: CandidateTerms,
): { opened: OpenedDetails[]; aside: Aside[] } {
  const opened: OpenedDetails[] = []
  const aside: Aside[] = []
  for (const candidate of candidates) {
    const sorted = sort(candidate, terms)
    if ('why' in sorted) aside.push(sorted)
    else opened.push(sorted)
  }
  return { opened, aside }
}

function sort(
  { sealed, fingerprint: stored, ...payout }: Candidate,
  { sealing, fingerprintKey, accountId, promises }: CandidateTerms,
): OpenedDetails | Aside {
  if (payout.accountId !== null && payout.accountId !== accountId) return { why: 'account-changed', payout }
  const note = withdrawnPromise(payout, promises)
  if (note !== null) return { why: 'no-promise', payout, note }
  try {
    const details = openDetails(payout, sealed, sealing)
    if (isAsTakenIn(payout, details, stored, fingerprintKey)) return { payout, details }
    const amount = details.amount ?? payout.amount
    const stood = amount === payout.amount ? null : payout.amount
    return { why: 'tampered', payout: { ...payout, amount }, stood }
  } catch (error) {
    if (!(error instanceof DoesNotOpen)) throw error
    return { why: 'details-sealed', payout, keyId: error.keyId }
  }
}

/**
 * Whether a payout would pay what its command asked for. Somebody who can write to the database has neither key: the
 * fingerprint binds amount and beneficiary, and the sealed amount binds both to this payout.
 */
function isAsTakenIn(payout: Payout, details: PayoutDetails, stored: Buffer, key: KeyObject): boolean {
  const { merchantId, payoutId, orderNo, amount, currency } = payout
  const asked = fingerprint({ ...details, amount, currency, bankCode: 'BANK' }, key)
  return (
    stored.equals(asked) &&
    (details.amount === null || details.amount === amount) &&
    orderNo === orderNumber(merchantId, payoutId, 1)
  )
}

/** Puts a payout aside, unsent, so that others go on. */
export function putAside(aside: Aside): Decision[] {
  const { payout } = aside
  switch (aside.why) {
    case 'details-sealed':
      return [hold(payout, aside.keyId)]
    case 'tampered': {
      const detail = tamperedInWords(aside)
      return [toReview(payout, 'tampered', detail), anomaly(payout, 'VALIDATION', 'tampered', detail, null)]
    }
    case 'account-changed': {
      const note = `gateway account ${payout.accountId}, which is not the one in force, may still have an attempt`
      return [toReview(payout, 'account-changed', note)]
    }
    case 'no-promise':
      return [toReview(payout, 'no-promise', aside.note)]
  }
}

const tamperedInWords = ({ payout, stood }: Extract<Aside, { why: 'tampered' }>): string =>
  stood === null
    ? 'amount, bank details or order number differ from what payoutd accepted, so payoutd did not send it'
    : `the stored amount was ${formatRupees(stood)}, but payoutd accepted ${formatRupees(payout.amount)}; payoutd put that back and did not send it`

const toReview = (payout: Payout, reason: string, note: string): Decision =>
  change(payout, become(payout, 'review', { reason }), 'VALIDATION', { note })
