import type { PayinKey } from '../../../payins/store.ts'
import { type PayinStory, tellPayin } from '../../../payins/story.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'

/** The story of a payin that a command names. Throws an ExpectedFailure where there is no such payin. */
export async function payinOf(db: Database, key: PayinKey): Promise<PayinStory> {
  const story = await tellPayin(db, key)
  if (!story) throw noSuchPayin(key)
  return story
}

export const noSuchPayin = ({ merchantId, payinId }: PayinKey) =>
  new ExpectedFailure(`merchant ${merchantId} has no payin ${payinId}`)

export const otherSettings = (merchantId: string) =>
  new ExpectedFailure(
    `merchant ${merchantId}: other settings are in force, so nothing was asked: use the settings in force`,
  )

export const WHOSE_PAYIN = 'whose payin it is; may be left out where there is one merchant'
