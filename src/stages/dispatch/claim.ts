import type { KeyObject } from 'node:crypto'
import type { GatewayPromises } from '../../domain/payout/next-query.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { become } from '../../domain/payout/transition.ts'
import type { Account } from '../../gateway/dialect/account.ts'
import { changedAt, type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import { knows } from '../../ledger/tables/migrations.ts'
import { blame } from '../../platform/postgres/faults.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import type { SealingKeys } from '../../platform/seal.ts'
import { type Aside, type OpenedDetails, putAside, sortOut } from './claim-candidates.ts'
import { covered } from './covered-by-balance.ts'
import { closed, type Gate, gate, type PaceLimits, rateAfter, rateOf } from './merchant-gate.ts'
import { type Candidate, lockCandidates, openAttempts, putAmountsBack } from './sql/claim.ts'
import { lockFundsIfFree, type MerchantPace, noteShort, spend, traffic } from './sql/funds.ts'

export type Claim = {
  /** Payouts whose intent to send is committed. */
  wave: OpenedDetails[]
  /** Payouts that were put aside, unsent. */
  aside: Aside[]
  gate: Gate
  /** Null if another transaction holds the lock of the merchant's row, which is soon free again. */
  funds: MerchantPace | null
  /** The first payout that the balance does not cover; null when all did. */
  shortOf: Payout | null
}

export type ClaimOptions = {
  merchantId: string
  atMost: number
  owner: string
  leaseMs: number
  limits: PaceLimits
  sealing: SealingKeys
  fingerprintKey: KeyObject
  /** The account to which this process would send them. */
  account: Pick<Account, 'accountId' | 'settingsHash'> & { promises: GatewayPromises }
  /** Which payouts the claim looks at: all but these, and only the first one; undefined: any. */
  among?: { allBut: string[]; onlyFirst: boolean }
}

/** The database, or the code, refuses to store a claim of these payouts; `cause` is its error. */
export class ClaimRefused extends Error {
  readonly payoutIds: readonly string[]
  constructor(payoutIds: readonly string[], cause: unknown) {
    super('a claim is refused', { cause })
    this.payoutIds = payoutIds
  }
}

/**
 * Takes the next payouts of one merchant, as many as its limits and its balance allow, and commits the intent to send them.
 * It holds the lock of the merchant's row, so all processes together keep the limits. It never waits for that lock, because it
 * would keep a connection that other merchants' claims need. Rejects with ClaimRefused unless the database fails as a whole.
 */
export async function claim(ledger: Ledger, options: ClaimOptions): Promise<Claim> {
  let looked: readonly Candidate[] = []
  try {
    return await claimAmong(ledger, options, (candidates) => {
      looked = candidates
    })
  } catch (error) {
    if (blame(error) === 'database') throw error
    throw new ClaimRefused(
      looked.map(({ payoutId }) => payoutId),
      error,
    )
  }
}

/** `look` gets the payouts that the claim looks at, before the claim does anything about them. */
function claimAmong(
  ledger: Ledger,
  options: ClaimOptions,
  look: (candidates: readonly Candidate[]) => void,
): Promise<Claim> {
  const { merchantId, atMost, limits, account } = options
  return ledger.db.transaction('claim', async (tx) => {
    const [funds] = await tx.run(lockFundsIfFree, { merchantId })
    if (!funds) return { ...NOTHING, gate: closed('locked'), funds: null }
    if (!knows(funds.oldest)) return { ...NOTHING, gate: closed('other-version'), funds }
    if (funds.isSetBack) return { ...NOTHING, gate: closed('set-back'), funds }
    if (funds.settingsHash !== account.settingsHash)
      return { ...NOTHING, gate: closed('other-settings'), funds }
    const [{ inFlight, lagMs }] = (await tx.run(traffic, { merchantId })) as [
      { inFlight: bigint; lagMs: number },
    ]
    const open = gate(funds, Number(inFlight), lagMs, limits, tx.now)
    if (open.room === 0) return { ...NOTHING, gate: open, funds }

    const { opened, aside } = await next(
      tx,
      Math.min(open.room, atMost),
      { funds, inFlight: Number(inFlight) },
      options,
      look,
    )
    await storeAside(tx, ledger, merchantId, aside)
    const { count, cost } = covered(
      opened.map(({ payout }) => payout.amount),
      funds,
      Number(inFlight),
    )
    const shortOf = opened[count]?.payout ?? null
    const shortPayoutId = shortOf?.payoutId ?? null
    if (shortPayoutId !== funds.shortPayoutId)
      await tx.run(noteShort, { merchantId, payoutId: shortPayoutId })
    if (count === 0) return { wave: [], aside, gate: open, funds, shortOf }

    const wave = await storeIntents(tx, ledger, opened.slice(0, count), options)
    const rateNext = rateAfter(funds.rateNext, rateOf(funds, limits), count, tx.now)
    await tx.run(spend, { merchantId, cost, rateNext })
    return { wave, aside, gate: open, funds, shortOf }
  })
}

/** Returns the payouts as they are from then on. */
async function storeIntents(
  tx: Transaction,
  ledger: Ledger,
  opened: readonly OpenedDetails[],
  { merchantId, owner, leaseMs, account: { accountId, settingsHash } }: ClaimOptions,
): Promise<OpenedDetails[]> {
  const leaseUntil = tx.now + leaseMs
  const intents = opened.map((each) => intend(each, leaseUntil, accountId))
  const decisions = intents.map(
    ({ before, after }): Decision => ({ change: { before, after, source: 'COMMAND', exchange: null } }),
  )
  await storeDecisions(tx, ledger, decisions)
  const attempts = intents.map(({ before, after }) => ({ ...after, claimedAt: changedAt(before, tx.now) }))
  await tx.run(openAttempts, { merchantId, attempts, owner, settingsHash, leaseUntil })
  return intents.map(({ after, details }) => ({ payout: after, details }))
}

/** Restores the accepted amounts, so that payoutd publishes no other from then on. */
async function storeAside(
  tx: Transaction,
  ledger: Ledger,
  merchantId: string,
  aside: readonly Aside[],
): Promise<void> {
  const changed = aside.flatMap((each) =>
    each.why === 'tampered' && each.stood !== null ? [each.payout] : [],
  )
  if (changed.length > 0) await tx.run(putAmountsBack, { merchantId, payouts: changed })
  await storeDecisions(tx, ledger, aside.flatMap(putAside))
}

const ANY = { allBut: [], onlyFirst: false }
const NOTHING = { wave: [], aside: [], shortOf: null }

function intend({ payout: before, details }: OpenedDetails, leaseUntil: number, accountId: string) {
  const fields = { attempt: before.attempt + 1, accountId, dueAt: leaseUntil }
  const after = become(before, 'submitting', fields)
  return { before, after, details }
}

/**
 * How many payouts a claim looks at once it finds one that must not be sent. There may be many of those, and the room of a
 * canary is small.
 */
const SWEEP = 500

/**
 * The next payouts, at most `limit` that may be sent, up to the first that the balance does not cover; and those between them
 * that must not be sent.
 */
async function next(
  tx: Transaction,
  limit: number,
  { funds, inFlight }: { funds: MerchantPace; inFlight: number },
  { merchantId, account: { accountId, promises }, among = ANY, ...keys }: ClaimOptions,
  look: (candidates: readonly Candidate[]) => void,
) {
  const { allBut, onlyFirst } = among
  const coveredOf = (candidates: readonly Candidate[]) =>
    covered(
      candidates.map(({ amount }) => amount),
      funds,
      inFlight,
    ).count
  const lookAt = async (limit: number) => {
    const found = (neverSent: boolean) => tx.run(lockCandidates, { merchantId, limit, allBut, neverSent })
    // What the gateway turned away, each for itself, would else test the circuit again and again.
    const fresh = funds.circuitOpened > 0 ? await found(true) : []
    const candidates = coveredOf(fresh) > 0 ? fresh : await found(false)
    const count = coveredOf(candidates)
    const wanted = candidates.slice(0, count + 1)
    look(wanted)
    return sortOut(wanted, { ...keys, accountId, promises })
  }
  const few = await lookAt(limit)
  if (few.aside.length === 0 || onlyFirst) return few
  const { opened, aside } = await lookAt(SWEEP)
  return { opened: opened.slice(0, limit), aside }
}
