import { awaitsRefusal } from '../../domain/commands/refused.ts'
import type { Decisions } from '../../domain/decisions.ts'
import type { Exchange } from '../../domain/evidence.ts'
import { payoutKey } from '../../domain/identifiers.ts'
import type { Instant } from '../../domain/instant.ts'
import { words } from '../../domain/mask.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import type { Decided } from '../../domain/payout/resolve.ts'
import { DOUBT } from '../../domain/payout/several-orders.ts'
import { isEnd } from '../../domain/payout/states.ts'
import { become } from '../../domain/payout/transition.ts'
import { applyAbsenceAfterRecovery, applyReportsAfterRecovery } from '../../domain/recovery/apply-report.ts'
import { type Ledger, lockPayouts, storeDecisions } from '../../ledger/ledger.ts'
import { tellLostResult } from '../../ledger/published-messages.ts'
import { countsSince } from '../../ledger/settings-in-force.ts'
import type { Fence } from '../../ledger/sql/fence.ts'
import { recordAttempts } from '../../ledger/sql/kafka/published-messages.ts'
import { type InForce, settingsInForce } from '../../ledger/sql/settings-in-force.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import type { QueryResult } from '../query-each.ts'
import { type AccountAnswers, type Accounts, type Whereabouts, whereabouts } from './accounts.ts'
import { refusals } from './cancel-requested.ts'
import { faultsOfRejected } from './rejected-faults.ts'
import { keepAbsence, keepFound, type RecoveryFinding, wasAtGateway } from './sql/list.ts'
import { noteLossFound } from './sql/server-identity.ts'

export type ConcludeDeps = Accounts & {
  ledger: Ledger
  decisions: Pick<Decisions, 'applyEvidence'>
  /** Who recovers, and why. */
  who: Decided
}

/**
 * Stores what all accounts reported about one payout of the list, applies it, and publishes the result that was lost. Resolves to
 * whether the answers were enough: to questions from before answers were last mixed up, only an order that is alive is. Throws an
 * ExpectedFailure if other settings of the merchant are in force.
 */
export async function conclude(
  key: Payout,
  said: AccountAnswers,
  askedAt: Instant,
  fence: Fence,
  deps: ConcludeDeps,
): Promise<QueryResult> {
  if (said.kind === 'silent') return 'silent'
  if (said.kind === 'unconfirmed') return 'not-yet'
  const { ledger } = deps
  return ledger.db.transaction('settle recovered', async (tx) => {
    const inForce = await demandSettings(tx, fence, deps)
    const since = Math.max(0, ...deps.accounts.map((account) => countsSince(account, inForce)))
    if (said.kind !== 'alive' && askedAt < since) return 'silent'
    const [payout] = await lockPayouts(tx, [key])
    if (!payout) throw new Error(`payout ${payoutKey(key)} is gone`)
    const where = whereabouts(payout, deps)
    if (said.kind === 'absent')
      return concludeAbsence(tx, payout, said.exchange, where, { ...fence, since }, ledger)
    const note = `${words(deps.who)} (the ledger was restored, and the gateway has this order)`
    const { decisions, after, sent } = applyReportsAfterRecovery(
      payout,
      said,
      where,
      note,
      deps.decisions,
      tx.now,
    )
    if (said.kind === 'failed' && after.state === 'review' && where.lacking !== null)
      decisions.push(leftUnasked(after, { ...where, isAway: false }))
    await storeDecisions(tx, ledger, decisions)
    if (sent) await recordLostAttempt(tx, payout)
    const { merchantId, payoutId } = payout
    await tx.run(keepFound, { merchantId, payoutId, round: fence.round, found: after.state })
    await tellResult(tx, after, ledger)
    return 'answered'
  })
}

/** Other settings, adopted meanwhile, would decide otherwise. */
async function demandSettings(
  tx: Transaction,
  { merchantId }: Fence,
  { accounts }: ConcludeDeps,
): Promise<InForce | undefined> {
  const [inForce] = await tx.run(settingsInForce, { merchantIds: [merchantId] })
  if (inForce && inForce.settingsHash !== accounts[0].settingsHash)
    throw new ExpectedFailure(
      `somebody put other gateway settings of ${merchantId} into force meanwhile: run payoutd recover again with those`,
    )
  return inForce
}

async function recordLostAttempt(tx: Transaction, payout: Payout): Promise<void> {
  const attempt = payout.attempt + 1
  await tx.run(recordAttempts, { lost: [{ ...payout, attempt, claimedAt: null }] })
  await tx.run(noteLossFound, {})
}

/** None of the accounts asked has it: counts that answer until there are enough to believe it. */
async function concludeAbsence(
  tx: Transaction,
  payout: Payout,
  exchange: Exchange,
  where: Whereabouts,
  { round, since }: Fence & { since: Instant },
  ledger: Ledger,
): Promise<QueryResult> {
  const { merchantId, payoutId } = payout
  const { confirmations } = where.queryPolicy
  const found = foundAbsent(payout, where)
  const [kept] = await tx.run(keepAbsence, {
    ...{ merchantId, payoutId, round, confirmations, found, since },
  })
  if (!kept?.believed) return 'not-yet'
  await tellResult(tx, payout, ledger)
  await storeDecisions(tx, ledger, await absent(tx, payout, exchange, where, kept.sent))
  return 'answered'
}

function foundAbsent(payout: Payout, { lacking }: Whereabouts): RecoveryFinding {
  const { state, attempt } = payout
  if (isEnd(state)) return state
  if (lacking !== null) return 'review'
  if (attempt > 0) return 'not-found'
  return awaitsRefusal(payout) ? 'rejected' : 'never-sent'
}

/** `sent`: payoutd knows of an attempt that the ledger lost. */
async function absent(
  tx: Transaction,
  payout: Payout,
  exchange: Exchange,
  where: Whereabouts,
  sent: boolean,
): Promise<Decision[]> {
  const { merchantId, payoutId, state } = payout
  if (isEnd(state)) return []
  const mayBeAlive = sent || (payout.accountId === null && payout.doubted)
  if (state !== 'review' && where.lacking !== null) return [leftUnasked(payout, where)]
  if (state !== 'review' && !mayBeAlive) return awaitsRefusal(payout) ? refusals(tx, [payout], exchange) : []
  // If the gateway had the order once and does not find it now, payoutd may be asking the wrong account.
  const had = (await tx.run(wasAtGateway, { merchantId, payoutId })).length > 0
  const lost = mayBeAlive ? { accountId: had ? null : where.accountId } : null
  // The person who decides about it wants to know that the gateway has no such order.
  const concluded = applyAbsenceAfterRecovery(payout, lost, exchange, where.queryPolicy)
  if (where.lacking === null) return [concluded]
  return [concluded, leftUnasked('change' in concluded ? concluded.change.after : payout, where)]
}

/**
 * For a payout that may be at an account which nobody can ask: it is not sent to another. Even if the ledger knows an account and
 * the settings have it, an attempt that the ledger lost may have gone to one that they lack.
 */
function leftUnasked(payout: Payout, { lacking, isAway }: Whereabouts): Decision {
  const note = `the settings lack ${lacking}, where the payout may be: add it to formerAccounts`
  // It may be alive at that account, and no other account promises anything for it.
  const doubted = isAway ? payout : { ...payout, accountId: null, ...DOUBT }
  const after = payout.state === 'review' ? doubted : become(doubted, 'review', { reason: 'account-unknown' })
  return { change: { before: payout, after, source: 'OPERATOR', exchange: { note } } }
}

async function tellResult(tx: Transaction, payout: Payout, ledger: Ledger): Promise<void> {
  if (isEnd(payout.state)) await tellLostResult(tx, payout, await faultsOfRejected(tx, payout), ledger)
}
