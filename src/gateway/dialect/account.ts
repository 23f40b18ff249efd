import { createHash, createHmac } from 'node:crypto'
import { parseBaseUrl } from '../client.ts'
import type { TlsFiles } from '../transport/connections.ts'
import type { Dialect } from './dialect.ts'
import { settingsHash } from './settings-hash.ts'

/** Where and as whom a gateway is spoken to. */
export type GatewaySettings = {
  baseUrl: string
  mchId: string
  /** Signs what is sent, and verifies answers and callbacks. */
  key: string
  /** Keys that it took the place of: callbacks may still be signed with them. */
  formerKeys: readonly string[]
  /** As the settings name it. */
  dialectName: string
  dialect: Dialect
  tls: TlsFiles
}

/** One account at a gateway and the settings it is reached with, without any secret. */
export type Account = {
  /** Stands for base URL and mchId: the same after a new key or with another dialect. */
  accountId: string
  baseUrl: string
  mchId: string
  /** Tells keys apart, and nothing about them. */
  keyFingerprint: string
  dialectName: string
  settingsHash: string
}

/** What tells people which account it is. */
export type NamedAccount = Pick<Account, 'accountId' | 'baseUrl' | 'mchId' | 'dialectName'>

/** The account that settings speak to. */
export function accountOf({ baseUrl, mchId, key, dialectName, dialect }: GatewaySettings): Account {
  const { origin, prefix } = parseBaseUrl(baseUrl)
  const address = origin + prefix
  return {
    accountId: createHash('sha256')
      .update(JSON.stringify([address, mchId]))
      .digest('hex')
      .slice(0, 16),
    baseUrl: address,
    mchId,
    keyFingerprint: createHmac('sha256', key).update('payoutd key fingerprint').digest('hex').slice(0, 16),
    dialectName,
    settingsHash: settingsHash({ baseUrl: address, mchId, dialect, key }),
  }
}

/** By merchant, its accounts: the one in use first, then former ones. */
export const accountIdsOf = (
  merchants: ReadonlyMap<string, GatewaySettings & { formerAccounts: readonly GatewaySettings[] }>,
): ReadonlyMap<string, readonly string[]> =>
  new Map(
    [...merchants].map(([merchantId, merchant]) => [
      merchantId,
      [merchant, ...merchant.formerAccounts].map((each) => accountOf(each).accountId),
    ]),
  )
