import type { Exchange, OrderReport } from '../../domain/evidence.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import type { QueryPolicy } from '../../domain/payout/next-query.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { orderAt } from './sql/list.ts'

/** One gateway account of the merchant that the recovery asks. */
export type AskedAccount = {
  accountId: string
  settingsHash: string
  queryPolicy: QueryPolicy
  /** Asks the gateway about an order. Never rejects. */
  query: (mchOrderNo: string) => Promise<QueryAnswer>
  /** The presence check of this account: call `found` with every order that was found. */
  presenceCheck: { found: (mchOrderNo: string) => void; holds: () => Promise<boolean> }
}

/** The gateway accounts of a merchant that a recovery can ask, and those that it cannot. */
export type Accounts = {
  /** The account in the settings, then former ones. */
  accounts: readonly [AskedAccount, ...AskedAccount[]]
  /** Accounts of the merchant, in words, that the settings lack: nobody can ask them. */
  missing: readonly string[]
}

/** Where a payout may be. */
export type Whereabouts = {
  /** The only account that may have it; null: any of several may, and no account's promise covers another. */
  accountId: string | null
  /** How to judge the answers about it: by the policy of its account, or the strictest of several. */
  queryPolicy: QueryPolicy
  /** Accounts, in words, that may have it but that nobody can ask, because the settings lack them; null: there are none. */
  lacking: string | null
  /** payoutd knows that one of these was used for it. */
  isAway: boolean
}

/** Considers all accounts even if the ledger knows one: an attempt that the ledger lost may have gone to any other. */
export function whereabouts({ accountId }: Payout, { accounts, missing }: Accounts): Whereabouts {
  const isAway = accountId !== null && !accounts.some((account) => account.accountId === accountId)
  const lacking = isAway ? `account ${accountId}` : missing.join(', ') || null
  const [first, ...others] = accounts
  const isSole = lacking === null && others.length === 0
  return {
    accountId: isSole ? first.accountId : null,
    queryPolicy: isSole ? first.queryPolicy : strictest(accounts),
    lacking,
    isAway,
  }
}

function strictest(accounts: Accounts['accounts']): QueryPolicy {
  const queryPolicies = accounts.map(({ queryPolicy }) => queryPolicy)
  return {
    queryAfterMs: accounts[0].queryPolicy.queryAfterMs,
    graceMs: Math.max(...queryPolicies.map(({ graceMs }) => graceMs)),
    confirmations: Math.max(...queryPolicies.map(({ confirmations }) => confirmations)),
    resendWhenAbsent: false,
  }
}

/** An order that one of the accounts has. */
export type FoundAt = { accountId: string; report: OrderReport }

/**
 * What all accounts report about one payout. `failed`: the first of its orders, if no account has one that did not fail;
 * `unconfirmed`: an account reported that it has none, but it finds nothing that is known to exist.
 */
export type AccountAnswers =
  | { kind: 'alive' | 'failed'; found: FoundAt }
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
  let alive: FoundAt | null = null
  let failed: FoundAt | null = null
  let absent: Exchange | null = null
  for (const account of accounts.toSorted((one, other) => Number(isKnown(other)) - Number(isKnown(one)))) {
    const { accountId } = account
    const answer = await account.query(orderNo)
    if (answer.kind === 'unknown') return alive ? { kind: 'alive', found: alive } : { kind: 'silent' }
    if (answer.kind === 'found') {
      account.presenceCheck.found(orderNo)
      const found = { accountId, report: answer.report }
      if (answer.report.status === 'success') return { kind: 'alive', found }
      if (answer.report.status === 'failed') failed ??= found
      else alive ??= found
      continue
    }
    // The ledger may know of no order at an account that it does not know to have been used.
    const isUnused =
      payout.accountId !== null && !isKnown(account) && !(await knowsOrderAt(account, payout, db))
    if (!alive && !isUnused && !(await account.presenceCheck.holds())) return { kind: 'unconfirmed' }
    absent = answer.exchange
  }
  if (alive) return { kind: 'alive', found: alive }
  if (failed) return { kind: 'failed', found: failed }
  return absent ? { kind: 'absent', exchange: absent } : { kind: 'silent' }
}

const knowsOrderAt = async ({ accountId }: AskedAccount, { merchantId }: Payout, db: Database) =>
  (await db.run(orderAt, { merchantId, accountId })).length > 0
