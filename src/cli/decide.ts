import type { Config } from '../config/config.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Database } from '../platform/postgres.ts'
import { consented, type DecisionOptions, type Told, tellDone, tellRefused } from './decision.ts'
import { withDatabase } from './with-database.ts'
import { withLedger } from './with-ledger.ts'

/** What a decision came to, or would come to. `isDone`: what was asked for, as far as a person wants to be asked. */
export type Result = Told & { isDone: boolean }

type Decision<Request> = {
  /** Finds what is to be decided about. Throws an ExpectedFailure where there is no such thing. */
  find: (db: Database) => Promise<Request>
  /** Stores nothing. */
  preview: (request: Request, db: Database) => Promise<Result>
  deed: (request: Request, ledger: Ledger) => Promise<Result>
}

/** Says what it would do, does it if that is agreed to, and says what it came to; the exit code is 1 if it is not done. */
export async function decide<Request>(
  config: Config,
  options: DecisionOptions,
  { find, preview, deed }: Decision<Request>,
): Promise<void> {
  const request = await withDatabase(config, async (db) => {
    const request = await find(db)
    const would = await preview(request, db)
    if (would.isDone) return (await consented(would, options)) ? request : null
    tellRefused(would, options)
    return null
  })
  if (request === null) return
  const did = await withLedger(config, (ledger) => deed(request, ledger))
  if (did.isDone) tellDone(did, options)
  else tellRefused(did, options)
}
