import type { Database } from '../../platform/postgres.ts'
import { removableTexts, UNREACHABLE_TODO, unreachableTexts } from '../gateway-settings-text.ts'
import { openByAccount } from '../open-by-account.ts'
import type { OpenAt } from '../sql/gateway-settings.ts'
import { type Check, type Finding, good, wrong } from './examine.ts'

/** `known`: by merchant, the accounts of its settings, the one in use first. */
export const accountChecks = (db: Database, known: ReadonlyMap<string, readonly string[]>): Check[] => [
  {
    name: 'gateway accounts',
    needs: ['migrations'],
    run: async () => judgeAccounts(await openByAccount(db), known),
  },
]

export function judgeAccounts(
  open: readonly OpenAt[],
  known: ReadonlyMap<string, readonly string[]>,
): Finding {
  const unreachable = unreachableTexts(open, known)
  if (unreachable.length > 0) return wrong(unreachable.join('; '), UNREACHABLE_TODO)
  return good(['everything open is at accounts of the settings', ...removableTexts(open, known)].join('; '))
}
