import type { Exchange } from '../domain/evidence.ts'
import type { Instant } from '../domain/instant.ts'
import type { Payout } from '../domain/payout/payout.ts'
import { BEYOND_UNMOVED } from '../ledger/evidence/repeats.ts'
import { READ_BACK } from '../ledger/read-back.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import type { SealingKeys } from '../platform/seal.ts'
import { type AskedFor, unsealed } from './request.ts'
import { type InReview, payoutsInReview } from './sql/review.ts'
import {
  type Attempt,
  anomaliesAbout,
  attemptsOf,
  type HistoryEntry,
  historyOf,
  type Sighting,
} from './sql/story.ts'

/** All that was said and done about one payout, each part in the order of time. */
export type Evidence = { attempts: Attempt[]; history: HistoryEntry[]; anomalies: Sighting[] }

/** A payout that waits for a person. */
export type ReviewCase = AskedFor & { payout: InReview; evidence: Evidence }

/** The `limit` longest in review of one merchant, the longest first. */
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

/** Something that the gateway said. */
export type Word = { at: Instant; source: string; exchange: Exchange }

/** The last thing that the gateway said of the order, believed or not; null: the ledger has nothing of that. */
export function lastWord({ history, anomalies }: Evidence): Word | null {
  const words = [...history, ...anomalies].flatMap(({ at, lastAt, source, exchange }): Word[] =>
    exchange !== null && isSaid(source, exchange) ? [{ at: lastAt ?? at, source, exchange }] : [],
  )
  return words.reduce<Word | null>((last, word) => (last && last.at > word.at ? last : word), null)
}

/** Part of its story was read back after a restore, of which nothing that was said is known. */
export const isReadBack = ({ attempts, history }: Evidence): boolean =>
  attempts.some(({ isPutBack }) => isPutBack) || history.some(({ exchange }) => isNoteOfReading(exchange))

const isNoteOfReading = (exchange: Exchange | null): boolean => exchange?.note === READ_BACK.note

/**
 * A page of some proxy is no word of the gateway: every answer of its own has a retCode. What is only counted may be one, and
 * is told as that.
 */
const isSaid = (source: string, { response, note }: Exchange): boolean =>
  note !== READ_BACK.note &&
  (source === 'CALLBACK' || typeof response?.retCode === 'string' || note === BEYOND_UNMOVED.note)
