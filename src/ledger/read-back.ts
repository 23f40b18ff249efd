import type { Database, Transaction } from '../platform/postgres/postgres.ts'

/** One transaction that gives a payout or a payin back what was published of it and lost. */
export const readBack = <T>(db: Database, work: (tx: Transaction) => Promise<T>): Promise<T> =>
  db.transaction('recall published', work)

/** What the history keeps of a transition that was read back. */
export const READ_BACK = { note: 'read back from what was published, after a restore' }
