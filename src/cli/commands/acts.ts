import { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import type { Instant } from '../../domain/instant.ts'
import { latestActs } from '../../ledger/sql/acts.ts'
import { actsText } from '../../views/acts-text.ts'
import { countOf } from '../options/count-of.ts'
import { momentOrDateOf } from '../options/moment-of.ts'
import { paiseAsText } from '../options/paise-as-text.ts'
import { inLines, note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'

type ActsOptions = { merchant?: string; since?: Instant; limit: number; json?: true }

const list = new Command('list')
  .description(
    'list what people did with commands, the latest first: who, when, from where, why, and to what',
  )
  .option('--merchant <id>', 'only acts on this merchant or on all merchants')
  .option('--since <moment>', 'only from this moment: 2026-11-01, or 2026-11-01T00:00+05:30', momentOrDateOf)
  .option('--limit <count>', 'the most to show', countOf, 100)
  .option(
    '--json',
    'print one JSON object per line, with the values before and after; times in milliseconds since 1970',
  )
  .action(async ({ merchant, since, limit, json }: ActsOptions) => {
    const asked = { merchantId: merchant ?? null, since: since ?? null, limit: limit + 1 }
    const found = await withDatabase(readConfig(process.env), (db) => db.run(latestActs, asked))
    const shown = found.slice(0, limit)
    if (json) for (const act of shown) print(JSON.stringify(act, paiseAsText))
    else print(shown.length > 0 ? actsText(inLines(shown)) : 'none')
    if (found.length > limit) note(`there are more; --limit ${limit} shows only the latest`)
  })

export const actsCommand = new Command('acts').addCommand(list)
