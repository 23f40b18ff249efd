import type { Config } from '../../../config/config.ts'
import { findFence } from '../../../operators/recovery/recovery.ts'
import { merchantsBeside } from '../../../operators/recovery/sql/fence.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import { inLines } from '../../print.ts'
import type { RecoverOptions } from './options.ts'

/** `others`: in the settings; `away`: in the ledger, but not in the settings. */
export type OnlyFenced = { others: string[]; away: string[] }

/**
 * The merchants that the command fences without asking about them. Whoever recovers one merchant because of a loss that payoutd
 * has not seen says that the ledger was set back, and it is everybody's; a merchant that is fenced already may be so for
 * reasons of its own.
 */
export async function besidesOf(
  { merchants }: Config,
  { merchant }: Pick<RecoverOptions, 'merchant'>,
  db: Database,
): Promise<OnlyFenced> {
  if (merchant !== undefined && (await findFence(db, merchant)) !== null) return { others: [], away: [] }
  const known = [...merchants.keys()]
  const away = (await db.run(merchantsBeside, { merchantIds: known })).map(({ merchantId }) => merchantId)
  return { others: merchant === undefined ? [] : known.filter((each) => each !== merchant), away }
}

export const onlyFenced = (merchantId: string) => ({ merchantId, feeEstimate: 0n })

export const besidesText = ({ others, away }: OnlyFenced): string[] => [
  ...(others.length > 0
    ? [
        `${inLines(others).join(', ')}: also fenced, because they share the ledger: run payoutd recover for them, too`,
      ]
    : []),
  ...(away.length > 0
    ? [
        `${inLines(away).join(', ')}: also fenced, but not in the settings, so payoutd cannot query them: put them back into the settings and run payoutd recover again`,
      ]
    : []),
]
