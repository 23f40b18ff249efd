import type { EvidenceSource, Exchange } from '../../domain/evidence.ts'
import type { Anomaly } from '../../domain/payout/payout.ts'
import { isSameUtr, utrKey } from '../../domain/utr.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { otherPayinsWithUtrs, otherPayoutsWithUtrs } from '../sql/utrs.ts'

/** How many holders of one UTR get an anomaly, so that a gateway with one UTR for all fills no table. */
const MOST_HOLDERS = 20

/** A payout or payin, by its id, that has just got a UTR. */
export type Named = {
  merchantId: string
  id: string
  orderNo: string | null
  utr: string
  source: EvidenceSource
  exchange: Exchange | null
}

type Stored = { merchantId: string; utr: string | null }
type EvidenceChange<Of> = { before: Of; after: Of; source: EvidenceSource; exchange: Exchange | null }

/** The changes that bring a UTR. */
export const named = <Of extends Stored>(
  changes: readonly EvidenceChange<Of>[],
  idsOf: (of: Of) => Pick<Named, 'id' | 'orderNo'>,
): Named[] =>
  changes.flatMap(({ before, after, source, exchange }) => {
    const { merchantId, utr } = after
    return utr === null || isSameUtr(utr, before.utr)
      ? []
      : [{ merchantId, ...idsOf(after), utr, source, exchange }]
  })

/**
 * Returns an anomaly for each payout (or payin) whose UTR another payout (or payin) of any merchant has already: one transfer
 * is taken for two. It changes nothing. Two transactions that store the same UTR at the same moment do not see each other.
 */
export async function utrsOfTwo(
  tx: Transaction,
  what: 'payout' | 'payin',
  named: readonly Named[],
): Promise<Anomaly[]> {
  if (named.length === 0) return []
  const byUtr = [...Map.groupBy(named, ({ utr }) => utrKey(utr)).values()]
  const found = await tx.run(what === 'payout' ? otherPayoutsWithUtrs : otherPayinsWithUtrs, {
    named,
    utrs: byUtr.map(([first]) => (first as Named).utr),
    limit: MOST_HOLDERS,
  })
  const others = Map.groupBy(found, ({ place }) => place)
  return byUtr.flatMap((same, i) => {
    const holders: Pick<Named, 'merchantId' | 'id'>[] = others.get(i + 1) ?? []
    return same.flatMap((each) => {
      const [other] = holders
      const isLast = holders.push(each) === MOST_HOLDERS
      if (!other || holders.length > MOST_HOLDERS) return []
      const { merchantId, id, orderNo, utr, source, exchange } = each
      const detail =
        `${what} ${id} of ${merchantId} has UTR ${utr}, which ${what} ${other.id} of ${other.merchantId} also has` +
        (isLast ? `; ${MOST_HOLDERS} have it now, and payoutd reports no more of them` : '')
      const payoutId = what === 'payout' ? id : null
      return [{ merchantId, payoutId, orderNo, kind: 'utr-of-two', detail, source, exchange }]
    })
  })
}
