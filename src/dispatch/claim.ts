import { type Ledger, storeDecisions } from '../ledger/ledger.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { become } from '../payout/transition.ts'
import { covered, type Gate, gate, type PaceLimits, rateAfter } from './pace.ts'
import { type Candidate, lockCandidates, openAttempts } from './sql/claim.ts'
import { lockPurse, type PurseRow, spend, traffic } from './sql/purse.ts'

/** A payout whose intent to send is committed, with its sealed bank details. */
export type Claimed = { payout: Payout; sealed: Buffer }

export type Claim = {
  wave: Claimed[]
  gate: Gate
  /** Null where the merchant has no row yet. */
  purse: PurseRow | null
  /** The first payout that the balance does not cover; null when all did. */
  shortOf: Payout | null
}

export type ClaimOptions = {
  merchantId: string
  atMost: number
  owner: string
  leaseMs: number
  limits: PaceLimits
}

/**
 * Takes the next payouts of one merchant, as many as its limits and its balance allow, and commits the
 * intent to send them. Under the lock of the merchant's row: all processes together keep its limits.
 */
export async function claim(ledger: Ledger, options: ClaimOptions): Promise<Claim> {
  const { merchantId, atMost, owner, leaseMs, limits } = options
  return ledger.db.transaction(async (tx) => {
    const [purse] = await tx.run(lockPurse, { merchantId })
    if (!purse) return { wave: [], gate: CLOSED, purse: null, shortOf: null }
    const [{ inFlight, lagMs }] = (await tx.run(traffic, { merchantId })) as [
      { inFlight: bigint; lagMs: number },
    ]
    const open = gate(purse, Number(inFlight), lagMs, limits, tx.now)
    if (open.room === 0) return { wave: [], gate: open, purse, shortOf: null }

    const candidates = await tx.run(lockCandidates, { merchantId, limit: Math.min(open.room, atMost) })
    const { count, cost } = covered(
      candidates.map(({ amount }) => amount),
      purse,
    )
    const shortOf = candidates[count] ?? null
    if (count === 0) return { wave: [], gate: open, purse, shortOf }

    const leaseUntil = tx.now + leaseMs
    const wave = candidates.slice(0, count).map((candidate) => intend(candidate, leaseUntil))
    const decisions = wave.map(
      ({ before, after }): Decision => ({
        change: { before, after, source: 'COMMAND', exchange: null },
      }),
    )
    await storeDecisions(tx, ledger, decisions)
    await tx.run(openAttempts, {
      merchantId,
      payoutIds: wave.map(({ after }) => after.payoutId),
      attempts: wave.map(({ after }) => after.attempt),
      orderNos: wave.map(({ after }) => after.orderNo),
      owner,
      leaseUntil,
    })
    const rateNext = rateAfter(purse.rateNext, limits.ratePerSecond, count, tx.now)
    await tx.run(spend, { merchantId, cost, rateNext })
    return { wave: wave.map(({ after, sealed }) => ({ payout: after, sealed })), gate: open, purse, shortOf }
  })
}

const CLOSED: Gate = {
  room: 0,
  spendable: 0n as Gate['spendable'],
  askBalance: false,
  closed: 'balance-unknown',
}

function intend({ sealed, ...before }: Candidate, leaseUntil: number) {
  const after = become(before, 'submitting', { attempt: before.attempt + 1, dueAt: leaseUntil })
  return { before, after, sealed }
}
