import { createHash, createHmac } from 'node:crypto'
import { parseBaseUrl } from '../base-url.ts'
import type { TlsFiles } from '../transport/connections.ts'
import type { Dialect } from './dialect.ts'
import { settingsHash } from './settings-hash.ts'

/** The address of a gateway, and the merchant's identity there. */
export type GatewaySettings = {
  baseUrl: string
  mchId: string
  /** Signs requests, and verifies answers and callbacks. */
  key: string
  /** The keys that it replaced: callbacks may still be signed with them. */
  formerKeys: readonly string[]
  /** The dialect's name in the settings. */
  dialectName: string
  dialect: Dialect
  tls: TlsFiles
}

/** A merchant's current account and its former ones. */
export type MerchantGateways = GatewaySettings & { formerAccounts: readonly GatewaySettings[] }

/** One account at a gateway with its settings, without any secret. */
export type Account = {
  /** Identifies base URL and mchId: it stays the same after a new key or with another dialect. */
  accountId: string
  baseUrl: string
  mchId: string
  /** Distinguishes keys and reveals nothing about them. */
  keyFingerprint: string
  dialectName: string
  settingsHash: string
}

/** The fields by which people recognize an account. */
export type NamedAccount = Pick<Account, 'accountId' | 'baseUrl' | 'mchId' | 'dialectName'>

/** The account that these settings reach. */
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
    keyFingerprint: fingerprintOf(key),
    dialectName,
    settingsHash: settingsHash({ baseUrl: address, mchId, dialect, key }),
  }
}

/** These settings with the account that they reach, and with `former`: the others that they give, once with each key. */
export const withAccount = <Settings extends MerchantGateways>(
  settings: Settings,
): Settings & { account: Account; former: readonly Account[] } => {
  const [account, ...former] = [settings, ...settings.formerAccounts].flatMap((each) =>
    [each.key, ...each.formerKeys].map((key) => accountOf({ ...each, key })),
  ) as [Account, ...Account[]]
  return { ...settings, account, former }
}

const fingerprintOf = (key: string): string =>
  createHmac('sha256', key).update('payoutd key fingerprint').digest('hex').slice(0, 16)

/** Whether both reach one account: one mchId at one address, or with one key, if the gateway has several addresses. */
export const isSameAccount = (one: Account, other: Account): boolean =>
  one.accountId === other.accountId ||
  (one.mchId === other.mchId && one.keyFingerprint === other.keyFingerprint)

/** Every key that may have signed a callback of the account. */
export const callbackKeys = ({ key, formerKeys }: Pick<GatewaySettings, 'key' | 'formerKeys'>) =>
  [key, ...formerKeys].map((each) => ({ key: each, fingerprint: fingerprintOf(each) }))

/** Each merchant's accounts: the current one first, then former ones. */
export const accountIdsOf = (
  merchants: ReadonlyMap<string, MerchantGateways>,
): ReadonlyMap<string, readonly string[]> =>
  new Map(
    [...merchants].map(([merchantId, merchant]) => [
      merchantId,
      [merchant, ...merchant.formerAccounts].map((each) => accountOf(each).accountId),
    ]),
  )
