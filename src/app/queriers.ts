import type { ConnectedAccounts } from '../gateway/accounts.ts'
import type { GatewayClient } from '../gateway/client.ts'
import { longestSendMs } from '../gateway/dialect/dialect.ts'
import type { Querier } from '../stages/outcomes/poller.ts'

/** How to ask each account of a merchant about an order; `query` asks one of them. */
export function queriersOf<Answer>(
  [current, ...former]: ConnectedAccounts,
  query: (client: GatewayClient, mchOrderNo: string) => Promise<Answer>,
): readonly [Querier<Answer>, ...Querier<Answer>[]] {
  const querierOf = ({
    accountId,
    baseUrl,
    settingsHash,
    queryPolicy,
    dialect,
    client,
  }: ConnectedAccounts[number]): Querier<Answer> => ({
    accountId,
    baseUrl,
    settingsHash,
    queryPolicy,
    query: (mchOrderNo) => query(client, mchOrderNo),
    timeoutMs: longestSendMs(dialect.sendTimeoutMs),
  })
  return [querierOf(current), ...former.map(querierOf)]
}
