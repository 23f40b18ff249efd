import type { MixedAnswer } from '../domain/gateway-answers.ts'
import { PROMISES_NOTHING, type QueryPolicy } from '../domain/payout/next-query.ts'
import type { Clock } from '../platform/running/clock.ts'
import type { CallbackAccount } from './callbacks/callback.ts'
import { createGatewayClient, type GatewayClient } from './client.ts'
import {
  type Account,
  accountOf,
  callbackKeys,
  type GatewaySettings,
  type MerchantGateways,
} from './dialect/account.ts'
import { queryPolicyOf } from './dialect/dialect.ts'

/** An account with its client and its rules. */
export type ConnectedAccount = CallbackAccount &
  Account &
  Pick<GatewaySettings, 'dialect'> & {
    client: GatewayClient
    queryPolicy: QueryPolicy
  }

/** A merchant's accounts: the one in its settings, then former ones that may still have open orders. */
export type ConnectedAccounts = readonly [ConnectedAccount, ...ConnectedAccount[]]

type Connecting = {
  applies: number
  clock: Clock
  mixedUp: (answer: MixedAnswer) => Promise<void>
}

/** Queries, the balance and payins share as many connections as applies have, plus this many. */
const SPARE_CONNECTIONS = 16

/**
 * Clients for all accounts of a merchant; the caller closes them. `applies`: how many applies run at once, at most; 0 in a
 * process that sends none. `mixedUp` is called when an account answers about another order than the one asked about. The promises of former accounts do not count: no operator adopts them, so their settings may be
 * corrected at any time.
 */
export function connectAccounts(
  merchant: MerchantGateways,
  { applies, ...beside }: Connecting,
): ConnectedAccounts {
  const { formerAccounts, ...current } = merchant
  return [
    connect(current, { applies, ...beside }),
    ...formerAccounts.map((former) => {
      const account = connect(former, { applies: 0, ...beside })
      return {
        ...account,
        queryPolicy: { ...account.queryPolicy, ...PROMISES_NOTHING },
      }
    }),
  ]
}

function connect(settings: GatewaySettings, { applies, clock, mixedUp }: Connecting): ConnectedAccount {
  const { mchId, key, dialect, tls } = settings
  const account = accountOf(settings)
  const { baseUrl } = account
  const queryPolicy = queryPolicyOf(dialect)
  const options = {
    baseUrl,
    mchId,
    key,
    dialect,
    tls,
    clock,
    mixedUp: (orderNo: string | null) => mixedUp({ baseUrl, orderNo }),
  }
  const open = (connections: number) => createGatewayClient({ ...options, connections })
  const others = open(applies + SPARE_CONNECTIONS)
  return {
    ...account,
    dialect,
    keys: callbackKeys(settings),
    client: applies === 0 ? others : withItsOwn(open(applies), others),
    queryPolicy,
  }
}

/** A hanging call must not keep an apply, whose lease runs, waiting for a connection. */
const withItsOwn = (applies: GatewayClient, others: GatewayClient): GatewayClient => ({
  ...others,
  apply: applies.apply,
  close: async () => void (await Promise.all([applies.close(), others.close()])),
})

/** The account that may have an order: the one it was sent to, or the one in the settings if it was not sent yet. */
export const accountWith = <Each extends Pick<Account, 'accountId'>>(
  accounts: readonly [Each, ...Each[]],
  accountId: string | null,
): Each | undefined =>
  accountId === null ? accounts[0] : accounts.find((each) => each.accountId === accountId)
