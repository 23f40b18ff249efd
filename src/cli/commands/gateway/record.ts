import { readDatabaseUrl } from '../../../config/config.ts'
import { type Act, recordAct } from '../../../ledger/acts.ts'
import { connectDatabase } from '../../../platform/postgres/postgres.ts'
import { note } from '../../print.ts'
import type { GatewayConnection } from './connection.ts'

/**
 * Records an act at a gateway past the ledger before it happens, if DATABASE_URL names a database. If the database does not
 * accept the record, the act does not happen.
 */
export async function recordRaw(
  { baseUrl, mchId }: Pick<GatewayConnection, 'baseUrl' | 'mchId'>,
  act: Pick<Act, 'by' | 'reason' | 'command' | 'subjects'> & { order: object },
): Promise<void> {
  const url = readDatabaseUrl(process.env)
  if (url === null) {
    note('DATABASE_URL is not set, so payoutd keeps no record of this act')
    return
  }
  const db = connectDatabase({ url, connections: 1, applicationName: 'payoutd command' })
  const { order, ...done } = act
  try {
    await recordAct(db, { ...done, merchantId: null, before: null, after: { baseUrl, mchId, ...order } })
  } finally {
    await db.close()
  }
}
