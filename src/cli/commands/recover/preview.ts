import type { Merchant } from '../../../config/merchants.ts'
import { intakeBacklog, type PartitionEnd } from '../../../ledger/intake-backlog.ts'
import { findFence } from '../../../operators/recovery/recovery.ts'
import { countOpenPayouts } from '../../../operators/recovery/sql/list.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import type { ActReport } from '../../decision.ts'
import { inLines } from '../../print.ts'
import { missingAccounts } from './accounts.ts'
import type { OnlyFenced } from './besides.ts'

/** What a recovery would do. */
export async function expected(
  merchants: readonly Merchant[],
  { others, away }: OnlyFenced,
  topic: string,
  ends: readonly PartitionEnd[],
  db: Database,
): Promise<ActReport> {
  const open: { merchantId: string; open: number; fenced: boolean; missing: string[] }[] = []
  for (const merchant of merchants) {
    const { merchantId } = merchant
    const [counted] = await db.run(countOpenPayouts, { merchantId })
    const fenced = (await findFence(db, merchantId)) !== null
    const missing = [...(await missingAccounts(merchant, db)).values()]
    open.push({ merchantId, open: counted?.count ?? 0, fenced, missing })
  }
  const merchantIds = merchants.map(({ merchantId }) => merchantId)
  const behind = await intakeBacklog({ topic, ends, merchantIds }, db)
  const each = open.flatMap(({ merchantId, open, fenced, missing }) => [
    fenced
      ? `${merchantId} is already fenced; payoutd would continue to ask the gateway about its open payouts, now ${open}`
      : `payoutd would fence ${merchantId} and ask the gateway about its open payouts, now ${open}`,
    ...missing.map(
      (account) =>
        `its settings lack ${account}, so payoutd cannot query it, and what may have been sent there would wait for a person: add it to formerAccounts first`,
    ),
  ])
  const besides = [
    ...others.map(
      (merchantId) =>
        `${inLines(merchantId)} shares the ledger: payoutd would fence it until you run payoutd recover for it, too`,
    ),
    ...away.map(
      (merchantId) =>
        `${inLines(merchantId)} is not in the settings: payoutd would fence it until you put it back and run payoutd recover again`,
    ),
  ]
  return {
    text: [
      ...each,
      ...besides,
      `payoutd serve would first have to read ${behind} commands again`,
      'every process that sends with a former database server must already be stopped',
    ].join('; '),
    json: { merchants: open, others, away, behind },
  }
}
