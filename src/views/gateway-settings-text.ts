import type { NamedAccount } from '../gateway/dialect/account.ts'
import { type Adopted, differencesText } from '../operators/gateway-settings.ts'
import type { OpenAt } from '../queries/sql/accounts.ts'

/** `mchId 1000100 at pay.example (dialect default, account 12ab…)`: the host of the base URL is enough for people. */
export const accountText = ({ accountId, baseUrl, mchId, dialectName }: NamedAccount): string =>
  `mchId ${mchId} at ${new URL(baseUrl).host} (dialect ${dialectName}, account ${accountId})`

/** `known`: the accounts of the settings, former ones too. `withdrawn`: see `countWithdrawn`. */
export function adoptedText(
  merchantId: string,
  { kind, before, after, others }: Adopted,
  open: readonly OpenAt[],
  known: readonly string[],
  withdrawn: number,
): string {
  if (kind === 'unchanged') return `these gateway settings of ${merchantId} are already in force`
  if (kind === 'moved') {
    return (
      `nothing was done: somebody put other gateway settings of ${merchantId}, or this account for another merchant, into force ` +
      'after you saw these; look again'
    )
  }
  const change = before ? differencesText(before, after) : 'none were in force'
  return [
    `the gateway settings of ${merchantId} here, mchId ${after.mchId} at ${after.baseUrl}, instead of those in force (${change})`,
    ...(others.length === 0
      ? []
      : [
          `this account, or a former one of these settings, is or was also that of merchant ${others.join(', ')}: payoutd does not recognize a payout that both ask for, ` +
            'and pays it twice',
        ]),
    ...open.flatMap((each) => {
      if (each.accountId === null || each.accountId === after.accountId) return []
      const where = `${each.count} open at account ${each.accountId}`
      return known.includes(each.accountId)
        ? `${where}, which stays in the settings as a former one`
        : `${where}, which these settings lack: these payouts would wait for a person, so add the account to formerAccounts`
    }),
    ...(withdrawn === 0
      ? []
      : [
          `${withdrawn} that rely on a promise of the gateway which these settings do not have: they go to review`,
        ]),
    'processes with other settings send nothing more for it: start each of them again with these',
  ].join('; ')
}

/**
 * One sentence for each account with something open that the settings lack. `known`: by merchant, the accounts of its settings.
 */
export const unreachableTexts = (
  open: readonly OpenAt[],
  known: ReadonlyMap<string, readonly string[]>,
): string[] =>
  open.flatMap(({ merchantId, accountId, count }) => {
    const accounts = known.get(merchantId)
    if (!accounts) return [`merchant ${merchantId} is not in the settings, and has ${count} open`]
    if (accountId === null || accounts.includes(accountId)) return []
    return [
      `merchant ${merchantId} has ${count} open at gateway account ${accountId}, which its settings do not have`,
    ]
  })

export const UNREACHABLE_TODO =
  'put the merchant back, or the account into its formerAccounts, until nothing is open there: without it, payoutd cannot query these payouts'

/** One sentence for each former account where nothing is open any more. */
export const removableTexts = (
  open: readonly OpenAt[],
  known: ReadonlyMap<string, readonly string[]>,
): string[] =>
  [...known].flatMap(([merchantId, [, ...former]]) =>
    former
      .filter((each) => !open.some((one) => one.merchantId === merchantId && one.accountId === each))
      .map(
        (each) =>
          `nothing of merchant ${merchantId} is open at its former account ${each}: remove it once no transfer from there can come ` +
          'back and no payin can be paid late, because payoutd does not learn of that afterwards',
      ),
  )
