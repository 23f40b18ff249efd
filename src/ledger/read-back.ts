import type { Database, Transaction } from '../platform/postgres/postgres.ts'

/** One transaction that restores to a payout or a payin what was published about it and then lost. */
export const recalling = <T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> =>
  db.transaction('recall published', work)

/** What the history keeps as the evidence of a transition that was read back. */
export const READ_BACK = { note: 'read back from what was published, after a restore' }
