import pLimit from 'p-limit'
import { isLocked } from './faults.ts'
import { type Database, through } from './postgres.ts'

/** Of 8 connections, by default. */
const MOST = 3

const shares = new WeakMap<Database, Map<string, Database>>()

/**
 * The same database for work that is about one merchant and may wait for locks on its rows. It uses at most three
 * connections at once, and only one after such a wait has failed, until one succeeds. Work that gets no connection
 * waits without one, so that others can use it.
 */
export function shareOf(db: Database, merchantId: string): Database {
  const ofDb = shares.get(db) ?? new Map<string, Database>()
  shares.set(db, ofDb)
  const share = ofDb.get(merchantId) ?? limited(db)
  ofDb.set(merchantId, share)
  return share
}

function limited(db: Database): Database {
  const limit = pLimit(MOST)
  const within = <T>(work: () => Promise<T>): Promise<T> =>
    limit(async () => {
      try {
        const result = await work()
        limit.concurrency = MOST
        return result
      } catch (error) {
        if (isLocked(error)) limit.concurrency = 1
        throw error
      }
    })
  return through(db, within)
}
