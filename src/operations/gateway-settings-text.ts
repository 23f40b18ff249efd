import { type Adopted, differencesText } from './gateway-settings.ts'
import type { OpenAt } from './sql/gateway-settings.ts'

/** `known`: the accounts of the settings, former ones too. */
export function adoptedText(
  merchantId: string,
  { kind, before, after }: Adopted,
  open: readonly OpenAt[],
  known: readonly string[],
): string {
  if (kind === 'unchanged') return `these gateway settings of ${merchantId} are in force already`
  const change = before ? differencesText(before, after) : 'none were in force'
  return [
    `the gateway settings of ${merchantId} here, mchId ${after.mchId} at ${after.baseUrl}, instead of those in force (${change})`,
    ...open.flatMap((each) => {
      if (each.accountId === null || each.accountId === after.accountId) return []
      const where = `${each.count} open at account ${each.accountId}`
      return known.includes(each.accountId)
        ? `${where}, which stays in the settings as a former one`
        : `${where}, which these settings do not have: they would wait for a person, so add it to formerAccounts`
    }),
  ].join('; ')
}
