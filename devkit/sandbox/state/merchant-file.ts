import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { dialectJson } from '../wire/dialect.ts'
import { readGiven } from '../wire/json-faults.ts'
import type { WantedMerchant } from './merchants.ts'

const key = z.string().min(1).max(200)

/** A merchant in JSON: as the admin API accepts it, and in a seed file. `balance` is a string of whole paise. */
export const merchantJson = z.strictObject({
  mchId: z.string().min(1).max(30),
  key,
  olderKeys: z.array(key).max(10).optional(),
  balance: z
    .string()
    .regex(/^\d{1,15}$/, 'must be a text of at most 15 digits: whole paise')
    .transform(BigInt)
    .optional(),
  dialect: dialectJson.optional(),
})

const seedJson = z.strictObject({ merchants: z.array(merchantJson) })

/** The merchants of a seed file, `{"merchants": [{"mchId", "key", …}]}`. Throws with every fault at once. */
export function readSeed(file: string): WantedMerchant[] {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    // Not the parser's message: it quotes the text, which contains keys.
    const unread = error instanceof SyntaxError ? 'it is not JSON' : (error as Error).message
    throw new Error(`the seed file ${file} cannot be read: ${unread}`, { cause: error })
  }
  const seed = readGiven(seedJson, json)
  if (!seed.ok) throw new Error(`the seed file ${file} is wrong: ${seed.faults}`)
  return seed.value.merchants
}
