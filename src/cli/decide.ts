import type { Config } from '../config/config.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import {
  type ActReport,
  confirmed,
  type DecisionOptions,
  reportDone,
  reportRefused,
  reportUndone,
} from './decision.ts'
import { withDatabase } from './with-database.ts'
import { withLedger } from './with-ledger.ts'

/**
 * The result of a decision, done or previewed. `isDone`: it does what the operator asked for, to the extent that payoutd should
 * ask. `isSoAlready`: it is not done because there is nothing to do, which is no failure.
 */
export type DecisionResult = ActReport & { isDone: boolean; isSoAlready?: boolean }

type OperatorAct<Request, Shown, On> = {
  /** Finds the subject of the decision. Throws an ExpectedFailure if there is none. */
  find: (db: Database) => Promise<Request>
  /** Stores nothing. `shown`: the request together with what the operator sees; agreement covers nothing else. */
  preview: (request: Request, db: Database) => Promise<DecisionResult & { shown: Shown }>
  execute: (shown: Shown, on: On) => Promise<DecisionResult>
}

/** Shows what the act would do, does it if the operator agrees, and shows the result; the exit code is 1 if it is refused. */
export const decide = <Request, Shown>(
  config: Config,
  options: DecisionOptions,
  act: OperatorAct<Request, Shown, Ledger>,
): Promise<void> => carryOut(config, options, act, (work) => withLedger(config, work))

/** The same for an act that writes no messages, and so needs neither topics nor schemas. */
export const decideInDatabase = <Request, Shown>(
  config: Config,
  options: DecisionOptions,
  act: OperatorAct<Request, Shown, Database>,
): Promise<void> => carryOut(config, options, act, (work) => withDatabase(config, work))

async function carryOut<Request, Shown, On>(
  config: Config,
  options: DecisionOptions,
  { find, preview, execute }: OperatorAct<Request, Shown, On>,
  open: (work: (on: On) => Promise<DecisionResult>) => Promise<DecisionResult>,
): Promise<void> {
  const agreed = await withDatabase(config, async (db) => {
    const { shown, ...would } = await preview(await find(db), db)
    if (would.isDone) return (await confirmed(would, options)) ? { shown } : null
    report(would, options)
    return null
  })
  if (agreed) report(await open((on) => execute(agreed.shown, on)), options)
}

function report(result: DecisionResult, options: DecisionOptions): void {
  if (result.isDone) reportDone(result, options)
  else if (result.isSoAlready) reportUndone(result, options)
  else reportRefused(result, options)
}
