import type { Config } from '../config/config.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type ActReport, confirmed, type DecisionOptions, reportDone, reportRefused } from './decision.ts'
import { withDatabase } from './with-database.ts'
import { withLedger } from './with-ledger.ts'

/** What a decision came to, or would come to. `isDone`: what was asked for, as far as a person wants to be asked. */
export type DecisionResult = ActReport & { isDone: boolean }

type OperatorAct<Request, Shown> = {
  /** Finds what is to be decided about. Throws an ExpectedFailure where there is no such thing. */
  find: (db: Database) => Promise<Request>
  /** Stores nothing. `shown`: the request together with what is shown, which is all that is agreed to. */
  preview: (request: Request, db: Database) => Promise<DecisionResult & { shown: Shown }>
  execute: (shown: Shown, ledger: Ledger) => Promise<DecisionResult>
}

/** Says what it would do, does it if that is agreed to, and says what it came to; the exit code is 1 if it is not done. */
export async function decide<Request, Shown>(
  config: Config,
  options: DecisionOptions,
  { find, preview, execute: deed }: OperatorAct<Request, Shown>,
): Promise<void> {
  const agreed = await withDatabase(config, async (db) => {
    const { shown, ...would } = await preview(await find(db), db)
    if (would.isDone) return (await confirmed(would, options)) ? { shown } : null
    reportRefused(would, options)
    return null
  })
  if (agreed === null) return
  const did = await withLedger(config, (ledger) => deed(agreed.shown, ledger))
  if (did.isDone) reportDone(did, options)
  else reportRefused(did, options)
}
