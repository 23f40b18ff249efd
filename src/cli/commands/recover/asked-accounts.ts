import type { ConnectedAccount, ConnectedAccounts } from '../../../gateway/accounts.ts'
import { PresenceCheck } from '../../../gateway/presence-check.ts'
import type { Accounts, AskedAccount } from '../../../operators/recovery/accounts.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import type { Clock } from '../../../platform/running/clock.ts'
import { askingAbout } from '../../../stages/outcomes/known-orders.ts'

/** How a recovery asks the gateway accounts of a merchant, with a presence check of its own. */
export function askedAccounts(
  merchantId: string,
  [current, ...former]: ConnectedAccounts,
  { db, clock }: { db: Database; clock: Clock },
): Accounts['accounts'] {
  const presenceCheck = new PresenceCheck(clock)
  const asked = ({
    accountId,
    baseUrl,
    settingsHash,
    queryPolicy,
    client,
  }: ConnectedAccount): AskedAccount => {
    const query = (mchOrderNo: string) => client.query({ mchOrderNo })
    return {
      ...{ accountId, baseUrl, settingsHash, queryPolicy, query },
      presenceCheck: {
        found: (mchOrderNo) => presenceCheck.found(settingsHash, mchOrderNo),
        holds: (payoutId) =>
          presenceCheck.holds(settingsHash, askingAbout({ merchantId, payoutId, accountId }, query, db)),
      },
    }
  }
  return [asked(current), ...former.map(asked)]
}
