import { otherInForce } from '../operators/gateway-settings.ts'
import { sharedTexts, TAKEN_TODO, takenTexts, type WithFormer } from '../operators/shared-accounts.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { openByAccount } from '../queries/open-by-account.ts'
import type { OpenAt } from '../queries/sql/accounts.ts'
import { removableTexts, UNREACHABLE_TODO, unreachableTexts } from '../views/gateway-settings-text.ts'
import { type Check, type Finding, good, warning, wrong } from './examine.ts'

/** `known`: by merchant, the accounts of its settings, the one in use first. `configured`: their settings. */
export const accountChecks = (
  db: Database,
  known: ReadonlyMap<string, readonly string[]>,
  configured: readonly WithFormer[],
): Check[] => [
  {
    name: 'settings in force',
    needs: ['migrations'],
    run: () => checkInForce(db, configured),
  },
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

export async function checkInForce(db: Database, configured: readonly WithFormer[]): Promise<Finding> {
  const taken = await takenTexts(db, configured)
  if (taken.length > 0) return wrong(taken.join('; '), `payoutd serve does not start. ${TAKEN_TODO}`)
  const others = await Promise.all(configured.map((each) => otherInForce(db, each)))
  const found = others.filter((other) => other !== null)
  if (found.length > 0)
    return wrong(
      found.join('; '),
      'payoutd serve does not start with these settings. If they were in use last (the ledger may have been set back since), or if ' +
        'you mean the change, run payoutd merchant adopt; only if they are former ones or a mistake, use those in force',
    )
  const shared = await sharedTexts(db, configured)
  if (shared.length === 0) return good('no other gateway settings are in force')
  return warning(
    shared.join('; '),
    'the same payroll under both ids would be paid twice: make sure that MERCHANT_ID, or id in the merchants file, is the right one, and take out a ' +
      'former account or key that is not its own',
  )
}
