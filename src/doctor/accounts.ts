import type { Database } from '../platform/postgres/postgres.ts'
import { openByAccount } from '../queries/open-by-account.ts'
import type { OpenAt } from '../queries/sql/accounts.ts'
import { removableTexts, UNREACHABLE_TODO, unreachableTexts } from '../views/gateway-settings-text.ts'
import { type Check, type Finding, good, wrong } from './examine.ts'

/** `known`: by merchant, the accounts of its settings, the one in use first. */
export const accountChecks = (db: Database, known: ReadonlyMap<string, readonly string[]>): Check[] => [
  {
    name: 'gateway accounts',
    needs: ['migrations'],
    run: async () => checkAccounts(await openByAccount(db), known),
  },
]

export function checkAccounts(
  open: readonly OpenAt[],
  known: ReadonlyMap<string, readonly string[]>,
): Finding {
  const unreachable = unreachableTexts(open, known)
  if (unreachable.length > 0) return wrong(unreachable.join('; '), UNREACHABLE_TODO)
  return good(
    ['the settings have every account with open payouts', ...removableTexts(open, known)].join('; '),
  )
}
