import type { EvidenceSource } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'
import type { Anomaly } from '../payout/payout.ts'
import { isSameUtr } from '../utr.ts'
import type { Payin } from './payin.ts'
import { isEnd, type PayinEnd } from './states.ts'
import { anomaly, atEnd } from './transition.ts'

/** An end that was published, as schemas/PayinResult.avsc tells it. */
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
 * What a published end (the latest, or the payment) does to a payin of a ledger that was set back. `told`: it is published, as nobody was told
 * of it, or not under a version above all others. `anomaly`: it cannot be taken over. Null: the ledger is not behind it.
 */
export type PayinReadBack = { after: Payin; told: boolean } | { anomaly: Anomaly } | null

/**
 * Takes a published end over where the ledger lacks it. Where the ledger came to another end since, paid is the last word,
 * whichever of the two says so; and what was told under a version that was published before is told under one above.
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
  if (!isEnd(payin.state)) return { after: taken(payin, end, now), told: version <= payin.version }
  if (payin.state === status) {
    const sameUtr = utr === null || payin.utr === null || isSameUtr(utr, payin.utr)
    if (!sameUtr) return odd(` with UTR ${utr}, the ledger has UTR ${payin.utr}`)
    return version > payin.version ? { after: taken(payin, end, now), told: false } : null
  }
  if (status === 'paid') return { after: taken(payin, end, now), told: version <= payin.version }
  return version < payin.version ? null : { after: { ...payin, version: version + 1 }, told: true }
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
