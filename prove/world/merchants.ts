import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { DemoSettings } from '../../devkit/local/demo/settings.ts'

type GatewayAccount = { mchId: string; key: string }

/** One of a world's merchants: its id at payoutd, its number and key at the gateway, and its former ones. */
export type WorldMerchant = GatewayAccount & { merchantId: string; former?: GatewayAccount }

/** The same merchant with another account at the gateway. */
export const withOtherAccount = ({ merchantId, mchId, key }: WorldMerchant): WorldMerchant => ({
  ...{ merchantId, mchId: String(Number(mchId) + 5_000_000), key: newKey(), former: { mchId, key } },
})

export const MERCHANT_ID = 'acme'
export const MCH_ID = '1000100'

/** The two that every world begins with. */
export const firstMerchants = (): WorldMerchant[] => [
  { merchantId: MERCHANT_ID, mchId: MCH_ID, key: newKey() },
  { merchantId: 'globex', mchId: '1000900', key: newKey() },
]

/** Merchants `acme-1`, `acme-2`, … with their own numbers and keys at the same gateway. */
export const furtherMerchants = (count: number): WorldMerchant[] =>
  Array.from({ length: count }, (_, i) => ({
    merchantId: `${MERCHANT_ID}-${i + 1}`,
    mchId: String(Number(MCH_ID) + i + 1),
    key: newKey(),
  }))

const newKey = (): string => randomBytes(16).toString('hex')

/** Paise: enough for every payout here. */
const BALANCE = String(10n ** 14n)

/** Registers a merchant at a sandbox. */
export async function openAccount(sandboxUrl: string, { mchId, key }: WorldMerchant): Promise<void> {
  const answer = await fetch(`${sandboxUrl}/_sandbox/merchants`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mchId, key, balance: BALANCE }),
  })
  if (!answer.ok) throw new Error(`the sandbox refuses the merchant: ${await answer.text()}`)
}

/** Further settings of all merchants of a world. */
export type EachMerchant = { ratePerSecond?: number; maxAmountRupees?: number }

/** Writes the merchants of a world to its merchants file; returns the settings that name the file and the keys. */
export function writeMerchants(
  dir: string,
  merchants: readonly WorldMerchant[],
  same: { baseUrl: string | undefined; dialect: string | undefined } & EachMerchant,
): DemoSettings {
  const file = path.join(dir, 'merchants.json')
  const { baseUrl, dialect } = same
  const entries = merchants.map(({ merchantId, mchId, former }, i) => ({
    ...{ id: merchantId, mchId, key: `env:MERCHANT_KEY_${i}` },
    ...same,
    ...(former && {
      formerAccounts: [{ mchId: former.mchId, key: `env:FORMER_KEY_${i}`, baseUrl, dialect }],
    }),
  }))
  writeFileSync(file, JSON.stringify({ merchants: entries }))
  return {
    MERCHANTS_FILE: file,
    ...Object.fromEntries(merchants.map(({ key }, i) => [`MERCHANT_KEY_${i}`, key])),
    ...Object.fromEntries(merchants.map(({ former }, i) => [`FORMER_KEY_${i}`, former?.key ?? ''])),
  }
}
