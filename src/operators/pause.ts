import { scrub } from '../domain/mask.ts'
import type { Paise } from '../domain/money.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import { recordAct } from '../ledger/acts.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import type { Pause } from '../queries/sql/merchants.ts'
import { clearPause, lockPause, openPaused, setPause } from './sql/pause.ts'

export type PauseRequest = Decided & {
  merchantId: string
  /** Of a merchant in the settings, so that it can be paused before it ever sent; null: it is in none. */
  feeEstimate: Paise | null
}

/** `unknown`: neither the ledger nor the settings have this merchant. */
export type PauseOutcome = { kind: 'paused' } | ({ kind: 'already' } & Pause) | { kind: 'unknown' }

/** Once it resolves, no further payout of the merchant is claimed. A pause that stands is left as it is. */
export function pauseMerchant(db: Database, request: PauseRequest): Promise<PauseOutcome> {
  const { merchantId, by, feeEstimate } = request
  const reason = scrub(request.reason)
  return db.transaction('pause merchant', async (tx): Promise<PauseOutcome> => {
    const [row] = await tx.run(lockPause, { merchantId })
    if (row && row.pausedBy !== null) return { kind: 'already', ...row }
    if (row) await tx.run(setPause, { merchantId, by, reason })
    else if (feeEstimate === null) return { kind: 'unknown' }
    else await tx.run(openPaused, { merchantId, by, reason, feeEstimate })
    const change = { subjects: [], before: null, after: { pausedBy: by, pausedReason: reason } }
    await recordAct(tx, { by, reason, command: 'pause', merchantId, ...change })
    return { kind: 'paused' }
  })
}

/** `resumed` tells the pause that ended. */
export type ResumeOutcome = ({ kind: 'resumed' } & Pause) | { kind: 'not-paused' } | { kind: 'unknown' }

export function resumeMerchant(
  db: Database,
  { merchantId, by, reason }: Decided & { merchantId: string },
): Promise<ResumeOutcome> {
  return db.transaction('resume merchant', async (tx): Promise<ResumeOutcome> => {
    const [row] = await tx.run(lockPause, { merchantId })
    if (!row) return { kind: 'unknown' }
    if (row.pausedBy === null) return { kind: 'not-paused' }
    await tx.run(clearPause, { merchantId })
    const change = { subjects: [], before: row, after: null }
    await recordAct(tx, { by, reason, command: 'resume', merchantId, ...change })
    return { kind: 'resumed', ...row }
  })
}
