import type { PayinKey } from '../../../payins/store.ts'
import { type PayinStory, tellPayin } from '../../../payins/story.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'

/** The story of a payin that a command names. Throws an ExpectedFailure if there is no such payin. */
export async function payinOf(db: Database, key: PayinKey): Promise<PayinStory> {
  const story = await tellPayin(db, key)
  if (!story) throw noSuchPayin(key)
  return story
}

export const noSuchPayin = ({ merchantId, payinId }: PayinKey) =>
  new ExpectedFailure(`merchant ${merchantId} has no payin ${payinId}`)

export const otherSettings = (merchantId: string) =>
  new ExpectedFailure(
    `merchant ${merchantId}: other gateway settings are in force, so payoutd did nothing: use the settings in force`,
  )

export const WHOSE_PAYIN = 'the merchant of the payin; you can omit it if there is only one merchant'
