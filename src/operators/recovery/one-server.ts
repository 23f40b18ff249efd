import type { Ledger } from '../../ledger/ledger.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import type { Connection, Database } from '../../platform/postgres/postgres.ts'
import { serverSince } from './sql/server-identity.ts'

/**
 * The ledger on the database server of this moment. Once another server has taken over, every change rejects with
 * `ExpectedFailure`: the new server may have lost what was read and asked before, and has a fence of its own.
 */
export async function onThisServer(ledger: Ledger): Promise<Ledger> {
  const began = await noted(ledger.db)
  const transaction: Database['transaction'] = (name, work) =>
    ledger.db.transaction(name, async (tx) => {
      if ((await noted(tx)) !== began) throw new ExpectedFailure(ANOTHER)
      return work(tx)
    })
  const db: Database = {
    ...ledger.db,
    transaction,
    write: (name, statement, params) => transaction(name, (tx) => tx.run(statement, params)),
  }
  return { ...ledger, db }
}

const ANOTHER =
  'another database server took over while this recovery ran: the merchants stay fenced; run the same command again'

const noted = async (connection: Connection): Promise<string | undefined> =>
  (await connection.run(serverSince, {}))[0]?.server
