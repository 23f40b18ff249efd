import { isDeepStrictEqual } from 'node:util'
import { scrub } from '../domain/mask.ts'
import type { Paise } from '../domain/money.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import { recordAct } from '../ledger/acts.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import type { Pause } from '../queries/sql/merchants.ts'
import { clearPause, lockPause, setPause } from './sql/pause.ts'

export type PauseRequest = Decided & {
  merchantId: string
  /** From the settings, so that a merchant can be paused before its first send; null: the settings do not have it. */
  feeEstimate: Paise | null
}

/** `unknown`: neither the ledger nor the settings have this merchant. */
export type PauseOutcome = { kind: 'paused' } | ({ kind: 'already' } & Pause) | { kind: 'unknown' }

/** Once it resolves, dispatch claims no further payout of the merchant. Leaves an existing pause as it is. */
export function pauseMerchant(db: Database, request: PauseRequest): Promise<PauseOutcome> {
  const { merchantId, by, feeEstimate } = request
  const reason = scrub(request.reason)
  return db.transaction('pause merchant', async (tx) => {
    const outcome = await decidePause(tx, request)
    if (outcome.kind !== 'paused') return outcome
    await tx.run(setPause, { merchantId, by, reason, feeEstimate: feeEstimate ?? 0n })
    const change = { subjects: [], before: null, after: { pausedBy: by, pausedReason: reason } }
    await recordAct(tx, { by, reason, command: 'pause', merchantId, ...change })
    return outcome
  })
}

/** What `pauseMerchant` would do now. Stores nothing. */
export const previewPause = (db: Database, request: PauseRequest): Promise<PauseOutcome> =>
  db.transaction('preview of a pause', (tx) => decidePause(tx, request))

async function decidePause(
  tx: Transaction,
  { merchantId, feeEstimate }: PauseRequest,
): Promise<PauseOutcome> {
  const [row] = await tx.run(lockPause, { merchantId })
  if (row && row.pausedBy !== null) return { kind: 'already', ...row }
  return { kind: row || feeEstimate !== null ? 'paused' : 'unknown' }
}

/** `resumed` has the pause that ended; `moved` another one than the operator was shown, which stays. */
export type ResumeOutcome =
  | ({ kind: 'resumed' | 'moved' } & Pause)
  | { kind: 'not-paused' }
  | { kind: 'unknown' }

/** `shown`: the pause that the operator was shown, if he was asked to confirm. */
export type ResumeRequest = Decided & { merchantId: string; shown?: Pause }

export function resumeMerchant(db: Database, request: ResumeRequest): Promise<ResumeOutcome> {
  const { merchantId, by, reason, shown } = request
  return db.transaction('resume merchant', async (tx) => {
    const outcome = await decideResume(tx, request)
    if (outcome.kind !== 'resumed') return outcome
    if (shown && !isDeepStrictEqual(pauseOf(outcome), pauseOf(shown))) return { ...outcome, kind: 'moved' }
    const { kind, ...before } = outcome
    await tx.run(clearPause, { merchantId })
    await recordAct(tx, { by, reason, command: 'resume', merchantId, subjects: [], before, after: null })
    return outcome
  })
}

const pauseOf = ({ pausedBy, pausedReason, pausedAt }: Pause): Pause => ({ pausedBy, pausedReason, pausedAt })

/** What `resumeMerchant` would do now. Stores nothing. */
export const previewResume = (db: Database, request: ResumeRequest): Promise<ResumeOutcome> =>
  db.transaction('preview of a resumption', (tx) => decideResume(tx, request))

async function decideResume(tx: Transaction, { merchantId }: ResumeRequest): Promise<ResumeOutcome> {
  const [row] = await tx.run(lockPause, { merchantId })
  if (!row) return { kind: 'unknown' }
  return row.pausedBy === null ? { kind: 'not-paused' } : { kind: 'resumed', ...row }
}
