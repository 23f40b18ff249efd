import type { Exchange } from '../../domain/evidence.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import { PROMISES_NOTHING, type QueryPolicy } from '../../domain/payout/next-query.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import type { FoundAt } from '../../domain/recovery/apply-report.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { orderAt } from './sql/list.ts'

/** One gateway account of the merchant that the recovery asks. */
export type AskedAccount = {
  accountId: string
  baseUrl: string
  settingsHash: string
  queryPolicy: QueryPolicy
  /** Asks the gateway about an order. Never rejects. */
  query: (mchOrderNo: string) => Promise<QueryAnswer>
  /** The presence check of this account: call `found` with every order that was found. */
  presenceCheck: { found: (mchOrderNo: string) => void; holds: (payoutId: string) => Promise<boolean | null> }
}

/** The gateway accounts of a merchant that a recovery can ask, and those that it cannot. */
export type Accounts = {
  /** The account in the settings, then former ones. */
  accounts: readonly [AskedAccount, ...AskedAccount[]]
  /** Accounts of the merchant that the settings lack, by id, in words: nobody can ask them. */
  missing: ReadonlyMap<string, string>
}

/** Where a payout may be. */
export type Whereabouts = {
  /** The only account that may have it; null: any of several may, and no account's promise covers another. */
  accountId: string | null
  /** How to judge the answers about it: by the policy of its account, or the strictest of several. */
  queryPolicy: QueryPolicy
  /** Accounts, in words, that may have it but that nobody can ask, because the settings lack them; null: there are none. */
  lacking: string | null
  /** There is only one of these, and payoutd knows that it was used for the payout. */
  isAway: boolean
}

/** Considers all accounts even if the ledger knows one: an attempt that the ledger lost may have gone to any other. */
export function whereabouts({ accountId }: Payout, { accounts, missing }: Accounts): Whereabouts {
  const isAsked = accountId === null || accounts.some((account) => account.accountId === accountId)
  const away = new Map([...(isAsked ? [] : [[accountId, `account ${accountId}`] as const]), ...missing])
  const lacking = [...away.values()].join(', ') || null
  const [first, ...others] = accounts
  const isSole = lacking === null && others.length === 0
  return {
    accountId: isSole ? first.accountId : null,
    queryPolicy: isSole ? first.queryPolicy : strictest(accounts),
    lacking,
    isAway: !isAsked && away.size === 1,
  }
}

function strictest(accounts: Accounts['accounts']): QueryPolicy {
  const queryPolicies = accounts.map(({ queryPolicy }) => queryPolicy)
  return {
    queryAfterMs: accounts[0].queryPolicy.queryAfterMs,
    graceMs: Math.max(...queryPolicies.map(({ graceMs }) => graceMs)),
    confirmations: Math.max(...queryPolicies.map(({ confirmations }) => confirmations)),
    ...PROMISES_NOTHING,
  }
}

/**
 * What all accounts report about one payout. `alive`: an account has an order that did not fail, the paid one first; `failed`: all
 * orders failed; `others`: the orders besides. `unconfirmed`: an account reported that it has none, but it finds nothing that is
 * known to exist.
 */
export type AccountAnswers =
  | { kind: 'alive' | 'failed'; found: FoundAt; others: readonly FoundAt[] }
  | { kind: 'absent'; exchange: Exchange }
  | { kind: 'silent' }
  | { kind: 'unconfirmed' }

/**
 * Asks each account, the one known to have been used first, until one has paid: an order that is alive at one may be beside one that
 * is paid at another.
 */
export async function askAccounts(
  payout: Payout,
  orderNo: string,
  { accounts }: Accounts,
  db: Database,
): Promise<AccountAnswers> {
  const isKnown = (account: AskedAccount) => account.accountId === payout.accountId
  const all: FoundAt[] = []
  let absent: Exchange | null = null
  let isSilent = false
  let isUnconfirmed = false
  for (const account of accounts.toSorted((one, other) => Number(isKnown(other)) - Number(isKnown(one)))) {
    const { accountId } = account
    const answer = await account.query(orderNo)
    if (answer.kind === 'unknown') {
      isSilent = true
    } else if (answer.kind === 'found') {
      account.presenceCheck.found(orderNo)
      all.push({ accountId, report: answer.report })
      if (answer.report.status === 'success' && answer.report.amount === payout.amount) break
    } else {
      // The ledger may know of no order at an account that it does not know to have been used.
      const isUnused =
        payout.accountId !== null && !isKnown(account) && !(await knowsOrderAt(account, payout, db))
      if (!isUnused && !(await account.presenceCheck.holds(payout.payoutId))) isUnconfirmed = true
      absent = answer.exchange
    }
  }
  const [found, ...others] = all.toSorted((one, other) => weight(other) - weight(one))
  if (found && found.report.status !== 'failed') return { kind: 'alive', found, others }
  if (isSilent) return { kind: 'silent' }
  if (isUnconfirmed) return { kind: 'unconfirmed' }
  if (found) return { kind: 'failed', found, others }
  return absent ? { kind: 'absent', exchange: absent } : { kind: 'silent' }
}

const weight = ({ report: { status } }: FoundAt): number =>
  status === 'success' ? 2 : Number(status !== 'failed')

const knowsOrderAt = async ({ accountId }: AskedAccount, { merchantId }: Payout, db: Database) =>
  (await db.run(orderAt, { merchantId, accountId })).length > 0
