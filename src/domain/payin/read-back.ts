import type { EvidenceSource } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'
import type { Anomaly } from '../payout/payout.ts'
import { isSameUtr } from '../utr.ts'
import type { Payin } from './payin.ts'
import { isEnd, type PayinEnd } from './states.ts'
import { anomaly, atEnd } from './transition.ts'

/** A published end, as schemas/PayinResult.avsc describes it. */
export type PublishedPayin = {
  status: PayinEnd
  version: number
  amount: Paise
  currency: string
  payOrderId: string | null
  utr: string | null
  paidAt: Instant | null
  reason: string | null
  evidence: EvidenceSource
}

/**
 * What a published end (the latest, or the payment) does to a payin of a ledger that was set back. `publish`: payoutd publishes
 * it, because it published no such end, or none under the highest version. `anomaly`: the ledger cannot take the end over.
 * Null: the ledger already has it.
 */
export type PayinReadBack = { after: Payin; publish: boolean } | { anomaly: Anomaly } | null

/**
 * Takes over a published end that the ledger lacks. If the ledger has reached another end since, paid wins, whichever of the
 * two says so. If another end was published under the same version, payoutd publishes the right one above it.
 */
export function readBackEnd(payin: Payin, end: PublishedPayin, now: Instant): PayinReadBack {
  const { status, version, utr } = end
  const odd = (detail: string): PayinReadBack =>
    anomaly(
      payin,
      'OPERATOR',
      'end-published',
      `it was published as ${status} (version ${version})${detail}`,
      null,
    )
  if (end.amount !== payin.amount || end.currency !== payin.currency) return odd(', of another amount')
  if (!isEnd(payin.state)) return { after: taken(payin, end, now), publish: version <= payin.version }
  if (payin.state === status) {
    const sameUtr = utr === null || payin.utr === null || isSameUtr(utr, payin.utr)
    if (!sameUtr) return odd(` with UTR ${utr}, the ledger has UTR ${payin.utr}`)
    return version > payin.version ? { after: taken(payin, end, now), publish: false } : null
  }
  if (status === 'paid') return { after: taken(payin, end, now), publish: version <= payin.version }
  return version < payin.version ? null : { after: { ...payin, version: version + 1 }, publish: true }
}

function taken(
  payin: Payin,
  { status, version, payOrderId, utr, paidAt, reason }: PublishedPayin,
  now: Instant,
): Payin {
  const isLate = version <= payin.version
  return {
    ...atEnd(payin, status, now),
    ...{ reason, version: isLate ? payin.version + 1 : version },
    ...{ payOrderId: payOrderId ?? payin.payOrderId, utr: utr ?? payin.utr, paidAt: paidAt ?? payin.paidAt },
  }
}
