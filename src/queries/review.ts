import type { Exchange } from '../domain/evidence.ts'
import type { Instant } from '../domain/instant.ts'
import type { Payout } from '../domain/payout/payout.ts'
import { BEYOND_UNMOVED } from '../ledger/evidence/repeats.ts'
import { READ_BACK } from '../ledger/read-back.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import type { SealingKeys } from '../platform/seal.ts'
import { type AskedFor, unsealed } from './request.ts'
import { type InReview, payoutsInReview } from './sql/payouts/review.ts'
import {
  type Attempt,
  anomaliesAbout,
  attemptsOf,
  type HistoryEntry,
  historyOf,
  type Sighting,
} from './sql/payouts/story.ts'

/** Everything that was reported and done about one payout, each part in the order of time. */
export type Evidence = { attempts: Attempt[]; history: HistoryEntry[]; anomalies: Sighting[] }

/** A payout that waits for a person. */
export type ReviewCase = AskedFor & { payout: InReview; evidence: Evidence }

/** The `limit` payouts of one merchant longest in review, the longest first. */
export async function reviewCases(
  db: Database,
  { merchantId, limit, keys }: { merchantId: string; limit: number; keys: SealingKeys },
): Promise<ReviewCase[]> {
  const cases: ReviewCase[] = []
  for (const { sealed, ...payout } of await db.run(payoutsInReview, { merchantId, limit })) {
    cases.push({ payout, ...unsealed(payout, sealed, keys), evidence: await evidenceOf(db, payout) })
  }
  return cases
}

export async function evidenceOf(
  db: Database,
  { merchantId, payoutId, orderNo }: Pick<Payout, 'merchantId' | 'payoutId' | 'orderNo'>,
): Promise<Evidence> {
  const key = { merchantId, payoutId }
  return {
    attempts: await db.run(attemptsOf, key),
    history: await db.run(historyOf, key),
    anomalies: await db.run(anomaliesAbout, { ...key, orderNo }),
  }
}

/** A report of the gateway. */
export type Word = { at: Instant; source: string; exchange: Exchange }

/** The gateway's last report about the order, believed or not; null: the ledger has none. */
export function lastWord({ history, anomalies }: Evidence): Word | null {
  const words = [...history, ...anomalies].flatMap(({ at, lastAt, source, exchange }): Word[] =>
    exchange !== null && isSaid(source, exchange) ? [{ at: lastAt ?? at, source, exchange }] : [],
  )
  return words.reduce<Word | null>((last, word) => (last && last.at > word.at ? last : word), null)
}

/** Part of its story was read back after a restore, which does not bring back the gateway's reports. */
export const isReadBack = ({ attempts, history }: Evidence): boolean =>
  attempts.some(({ isPutBack }) => isPutBack) || history.some(({ exchange }) => isNoteOfReading(exchange))

const isNoteOfReading = (exchange: Exchange | null): boolean => exchange?.note === READ_BACK.note

/**
 * A proxy's page is no report of the gateway: every answer of its own has a retCode. A report that is only counted may be one,
 * and is shown as such.
 */
const isSaid = (source: string, { response, note }: Exchange): boolean =>
  note !== READ_BACK.note &&
  (source === 'CALLBACK' || typeof response?.retCode === 'string' || note === BEYOND_UNMOVED.note)
