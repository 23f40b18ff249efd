import { type Ledger, storeDecisions } from '../ledger/ledger.ts'
import { paise } from '../payout/money.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { become } from '../payout/transition.ts'
import type { Transaction } from '../platform/postgres.ts'
import type { SealingKeys } from '../platform/seal.ts'
import { covered, type Gate, gate, type PaceLimits, rateAfter } from './pace.ts'
import { hold, type Opened, openEach, type Sealed } from './sealed.ts'
import { lockCandidates, openAttempts } from './sql/claim.ts'
import { lockFreePurse, noteShort, type PurseRow, spend, traffic } from './sql/purse.ts'

export type Claim = {
  /** Payouts whose intent to send is committed. */
  wave: Opened[]
  /** Payouts that were put aside because their bank details do not open. */
  sealed: Sealed[]
  gate: Gate
  /** Null where another holds the lock of the merchant's row: who comes again soon finds it free. */
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
  sealing: SealingKeys
}

/**
 * Takes the next payouts of one merchant, as many as its limits and its balance allow, and commits the
 * intent to send them. Under the lock of the merchant's row: all processes together keep its limits. Nobody waits for
 * that lock with a connection in hand, which other merchants' claims need.
 */
export async function claim(ledger: Ledger, options: ClaimOptions): Promise<Claim> {
  const { merchantId, atMost, owner, leaseMs, limits, sealing } = options
  return ledger.db.transaction('claim', async (tx) => {
    const [purse] = await tx.run(lockFreePurse, { merchantId })
    if (!purse) return { ...NOTHING, gate: LOCKED, purse: null }
    const [{ inFlight, lagMs }] = (await tx.run(traffic, { merchantId })) as [
      { inFlight: bigint; lagMs: number },
    ]
    const open = gate(purse, Number(inFlight), lagMs, limits, tx.now)
    if (open.room === 0) return { ...NOTHING, gate: open, purse }

    const { opened, sealed } = await next(tx, merchantId, Math.min(open.room, atMost), sealing)
    await storeDecisions(tx, ledger, sealed.map(hold))
    const { count, cost } = covered(
      opened.map(({ payout }) => payout.amount),
      purse,
    )
    const shortOf = opened[count]?.payout ?? null
    const shortPayoutId = shortOf?.payoutId ?? null
    if (shortPayoutId !== purse.shortPayoutId)
      await tx.run(noteShort, { merchantId, payoutId: shortPayoutId })
    if (count === 0) return { wave: [], sealed, gate: open, purse, shortOf }

    const leaseUntil = tx.now + leaseMs
    const wave = opened.slice(0, count).map((each) => intend(each, leaseUntil))
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
    return {
      wave: wave.map(({ after, details }) => ({ payout: after, details })),
      sealed,
      gate: open,
      purse,
      shortOf,
    }
  })
}

const NOTHING = { wave: [], sealed: [], shortOf: null }
const LOCKED: Gate = { room: 0, spendable: paise(0), askBalance: false, closed: 'locked' }

function intend({ payout: before, details }: Opened, leaseUntil: number) {
  const after = become(before, 'submitting', { attempt: before.attempt + 1, dueAt: leaseUntil })
  return { before, after, details }
}

/** What does not open may be many, with the room of a canary: this many are looked at once one is found. */
const SWEEP = 500

/** The next payouts, at most `limit` that open; with what lies between them and does not. */
async function next(tx: Transaction, merchantId: string, limit: number, sealing: SealingKeys) {
  const few = openEach(await tx.run(lockCandidates, { merchantId, limit }), sealing)
  if (few.sealed.length === 0) return few
  const { opened, sealed } = openEach(await tx.run(lockCandidates, { merchantId, limit: SWEEP }), sealing)
  return { opened: opened.slice(0, limit), sealed }
}
