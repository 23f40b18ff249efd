import pg from 'pg'

/** `pg`'s error for a statement without an answer in time; it has no code. */
export const isUnanswered = (error: unknown): error is Error =>
  error instanceof Error && error.message === 'Query read timeout'

/** The SQLSTATE of an error from the server, or undefined for anything else (connection lost, a bug). */
export const sqlState = (error: unknown): string | undefined =>
  error instanceof pg.DatabaseError ? error.code : undefined

/** Errors of the driver without an answer of the server: no connection, or a lost or slow one. */
const unanswered = new WeakSet<object>()

/** Waits for the driver, and remembers its errors that are not the server's. */
export async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Error && !(error instanceof pg.DatabaseError)) unanswered.add(error)
    throw error
  }
}

/** What is at fault: the data of this statement, the database as a whole, or unclear. */
export type Blame = 'data' | 'database' | 'unclear'

/**
 * By SQLSTATE, or its first two characters for a whole class (PostgreSQL manual, Appendix A). A statement with bad
 * data fails however often it is tried; with the database at fault any other statement would fail as well.
 */
const BLAMED: Readonly<Record<string, Blame>> = {
  '08P01': 'data', // protocol violation: a value that the protocol cannot carry
  22: 'data', // data exception: out of range, bad encoding, not JSON
  23: 'data', // a constraint does not hold
  44: 'data',
  54: 'data', // a limit of the program: an index row too large
  '08': 'database', // connection
  '0A': 'database', // such as a plan that another process has outdated
  25: 'database', // transaction state: read-only, timed out
  26: 'database',
  28: 'database', // login refused
  '3D': 'database',
  '3F': 'database',
  40: 'database', // rolled back, as after a deadlock
  42: 'database', // a table or a right is missing, never caused by data
  53: 'database', // out of disk, memory, connections
  55: 'database', // locked, or not ready
  57: 'database', // an operator's act: shut down, cancelled
  58: 'database', // the system below
  F0: 'database',
  XX001: 'database', // a page that it cannot read
  XX002: 'database', // a damaged index
}

/** What an error of a statement or a transaction blames; a bug of ours is unclear. */
export function blame(error: unknown): Blame {
  if (isWithoutAnswer(error)) return 'database'
  const state = sqlState(error) ?? ''
  return BLAMED[state] ?? BLAMED[state.slice(0, 2)] ?? 'unclear'
}

/** Whether the server gave no answer: it is away, or too slow. */
export const isWithoutAnswer = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && unanswered.has(error)

/** Whether a transaction took longer than allowed: the database is slow, or the transaction does too much at once. */
export const isOutOfTime = (error: unknown): boolean => sqlState(error) === '25P04'

/** Whether a statement waited for another's lock as long as allowed. */
export const isLocked = (error: unknown): boolean => sqlState(error) === '55P03'

/** Locked, cancelled, too much memory, too much in temporary files. */
const OF_SOME_ROWS = new Set(['55P03', '57014', '53200', '53400'])

/** Whether a statement may have failed for its own rows only, and may succeed later. */
export const isOfSomeRows = (error: unknown): boolean => OF_SOME_ROWS.has(sqlState(error) ?? '')

/** If the fault is unclear, an item that fails this often on its own counts as bad data. */
export const TRIES_ALONE = 3
