import type { Exchange, OrderReport } from '../../domain/evidence.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import type { QueryPolicy } from '../../domain/payout/next-query.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { orderAt } from './sql/list.ts'

/** One gateway account of the merchant, as it is asked. */
export type AskedAccount = {
  accountId: string
  settingsHash: string
  queryPolicy: QueryPolicy
  /** Asks the gateway about an order. Never rejects. */
  query: (mchOrderNo: string) => Promise<QueryAnswer>
  /** The presence check of this account: `found` is told of every order that was found. */
  presenceCheck: { found: (mchOrderNo: string) => void; holds: () => Promise<boolean> }
}

/** The gateway accounts of a merchant by which a recovery asks, and those by which it cannot. */
export type Accounts = {
  /** The account in the settings, and former ones behind it. */
  accounts: readonly [AskedAccount, ...AskedAccount[]]
  /** Accounts of the merchant, in words, that the settings lack: nobody can ask there. */
  missing: readonly string[]
}

/** Where a payout may be. */
export type Whereabouts = {
  /** The account that alone may have it; null: any of several, of which none promises anything for another. */
  accountId: string | null
  /** By which the answers about it are judged: that of its account, or the strictest of several. */
  queryPolicy: QueryPolicy
  /** Accounts, in words, that may have it and that nobody can ask, as the settings lack them; null: there are none. */
  lacking: string | null
  /** One of these is known to have been used for it. */
  isAway: boolean
}

/** Also a payout of which one account is known: an attempt that the ledger lost may have gone to any other. */
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
 * What all accounts say of one payout. `failed` is the first of its orders where no account has one that did not fail;
 * `unconfirmed`: an account said that it has none while it finds nothing that is known to exist.
 */
export type AccountAnswers =
  | { kind: 'alive' | 'failed'; found: FoundAt }
  | { kind: 'absent'; exchange: Exchange }
  | { kind: 'silent' }
  | { kind: 'unconfirmed' }

/** Asks each account, the one that is known to have been used first, until one has an order that did not fail. */
export async function askAccounts(
  payout: Payout,
  orderNo: string,
  { accounts }: Accounts,
  db: Database,
): Promise<AccountAnswers> {
  const isKnown = (account: AskedAccount) => account.accountId === payout.accountId
  let failed: FoundAt | null = null
  let absent: Exchange | null = null
  for (const account of accounts.toSorted((one, other) => Number(isKnown(other)) - Number(isKnown(one)))) {
    const { accountId } = account
    const answer = await account.query(orderNo)
    if (answer.kind === 'unknown') return { kind: 'silent' }
    if (answer.kind === 'found') {
      account.presenceCheck.found(orderNo)
      const found = { accountId, report: answer.report }
      if (answer.report.status !== 'failed') return { kind: 'alive', found }
      failed ??= found
      continue
    }
    // At an account that the ledger does not know to have been used for it, no order may be known to exist.
    const isUnused =
      payout.accountId !== null && !isKnown(account) && !(await knowsOrderAt(account, payout, db))
    if (!isUnused && !(await account.presenceCheck.holds())) return { kind: 'unconfirmed' }
    absent = answer.exchange
  }
  if (failed) return { kind: 'failed', found: failed }
  return absent ? { kind: 'absent', exchange: absent } : { kind: 'silent' }
}

const knowsOrderAt = async ({ accountId }: AskedAccount, { merchantId }: Payout, db: Database) =>
  (await db.run(orderAt, { merchantId, accountId })).length > 0
