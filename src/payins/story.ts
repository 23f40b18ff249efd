import type { Payin } from '../domain/payin/payin.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import {
  inReview,
  type PayinHistoryEntry,
  type PayinSighting,
  payinAnomalies,
  payinById,
  payinHistory,
} from './sql/story.ts'
import type { PayinKey } from './store.ts'

/** Everything known about one payin; times in milliseconds since the epoch, amounts in paise. */
export type PayinStory = Payin & { history: PayinHistoryEntry[]; anomalies: PayinSighting[] }

/** Finds a payin by its id, which may be any text; undefined: it is unknown. */
export async function findPayin(db: Database, { merchantId, payinId }: PayinKey): Promise<Payin | undefined> {
  const [payin] = await db.run(payinById, { merchantId, payinId })
  return payin
}

/** The story of a payin; null: it is unknown. Reads its parts one after another; a change meanwhile shows in the later ones. */
export async function tellPayin(db: Database, wanted: PayinKey): Promise<PayinStory | null> {
  const payin = await findPayin(db, wanted)
  if (!payin) return null
  const { merchantId, payinId } = payin
  const key = { merchantId, payinId }
  return {
    ...payin,
    history: await db.run(payinHistory, key),
    anomalies: await db.run(payinAnomalies, key),
  }
}

/** The `limit` oldest payins of one merchant that are in review, the oldest first. */
export async function payinsInReview(
  db: Database,
  { merchantId, limit }: { merchantId: string; limit: number },
): Promise<PayinStory[]> {
  const stories: PayinStory[] = []
  for (const key of await db.run(inReview, { merchantId, limit })) {
    const story = await tellPayin(db, key)
    if (story) stories.push(story)
  }
  return stories
}

/** As JSON. Amounts are text, because a JSON number need not hold one exactly. */
export const payinJson = (payin: Payin, indent?: number): string =>
  JSON.stringify(payin, (_, value) => (typeof value === 'bigint' ? value.toString() : value), indent)
