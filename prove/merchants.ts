import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { MCH_ID, MERCHANT_ID, type World } from './world.ts'

export type FurtherMerchant = { merchantId: string; mchId: string; key: string }

/** Merchants `acme-1`, `acme-2`, … with numbers and keys of their own at the same gateway. */
export const furtherMerchants = (count: number): FurtherMerchant[] =>
  Array.from({ length: count }, (_, i) => ({
    merchantId: `${MERCHANT_ID}-${i + 1}`,
    mchId: String(Number(MCH_ID) + i + 1),
    key: randomBytes(16).toString('hex'),
  }))

/** Paise: enough for everything that anybody asks for here. */
const BALANCE = String(10n ** 14n)

/** Makes them known to the sandbox, and to every payoutd of this world that is started from now on. */
export async function addMerchants(world: World, further: readonly FurtherMerchant[]): Promise<void> {
  for (const { mchId, key } of further) {
    const answer = await fetch(`${world.sandbox.url}/_sandbox/merchants`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ mchId, key, balance: BALANCE }),
    })
    if (!answer.ok) throw new Error(`the sandbox refuses the merchant: ${await answer.text()}`)
  }
  const { GATEWAY_BASE_URL: baseUrl, GATEWAY_DIALECT: dialect } = world.settings
  const merchants = [
    { id: MERCHANT_ID, baseUrl, mchId: MCH_ID, key: 'env:GATEWAY_KEY', dialect },
    ...further.map(({ merchantId, mchId }, i) => ({
      ...{ id: merchantId, baseUrl, mchId, key: `env:GATEWAY_KEY_${i + 1}`, dialect },
    })),
  ]
  const file = path.join(world.dir, 'merchants.json')
  writeFileSync(file, JSON.stringify({ merchants }))
  Object.assign(
    world.settings,
    { MERCHANTS_FILE: file },
    Object.fromEntries(further.map(({ key }, i) => [`GATEWAY_KEY_${i + 1}`, key])),
  )
}
