import type { EvidenceSource } from '../../domain/evidence.ts'
import type { Anomaly } from '../../domain/payout/payout.ts'
import type { Logger } from '../../platform/log.ts'
import { type Blame, blame, sqlState } from '../../platform/postgres/faults.ts'
import { type Ledger, ledgerOf, storeDecisions } from '../ledger.ts'

/** The subject of evidence or due work. Its names are payoutd's own, or have only characters that the contract allows. */
export type SaidAbout = {
  merchantId: string
  payoutId: string | null
  /** '' or null: the evidence names no order. */
  orderNo: string | null
  source: EvidenceSource
}

/**
 * Call it after evidence could not be stored. If the database refuses this evidence alone, and not everything, stores an
 * anomaly (`not-stored`) in payoutd's words: the content is lost, the fact that it came is not. Never rejects. Returns what
 * `error` blames.
 */
export async function keepRefused(
  error: unknown,
  { orderNo, ...about }: SaidAbout,
  { ledger, log }: { ledger: Ledger; log: Logger },
): Promise<Blame> {
  const blamed = blame(error)
  if (blamed === 'database') return blamed
  const code = `SQLSTATE ${sqlState(error) ?? 'none'}`
  const detail =
    about.source === 'CLOCK'
      ? `the database refuses to store its next step (${code}), so it stays as it is, and payoutd tries again`
      : `the database refuses to store this report (${code}), so the report changes nothing`
  const anomaly: Anomaly = { ...about, orderNo: orderNo || null, kind: 'not-stored', detail, exchange: null }
  try {
    const { db } = ledgerOf(ledger, about.merchantId)
    await db.transaction('keep refused evidence', (tx) => storeDecisions(tx, ledger, [{ anomaly }]))
  } catch (failure) {
    log.error({ err: failure, ...about, orderNo }, 'could not store the anomaly about refused evidence')
  }
  return blamed
}
