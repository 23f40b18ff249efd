import { Command } from 'commander'
import { readConfig } from '../../../config/config.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import { reviewCases } from '../../../queries/review.ts'
import { reviewText } from '../../../views/review-text.ts'
import { countOf } from '../../options/count-of.ts'
import { merchantOf } from '../../options/merchant-of.ts'
import { paiseAsText } from '../../options/paise-as-text.ts'
import { inLines, note, print } from '../../print.ts'
import { withDatabase } from '../../with-database.ts'
import { WHOSE_PAYOUT } from './payout-of.ts'

export const reviewCommand = new Command('review')
  .description('list payouts in review with their evidence, the longest waiting first')
  .option('--merchant <id>', WHOSE_PAYOUT)
  .option('--limit <count>', 'the most to show', countOf, 100)
  .option('--json', 'print one JSON object per line; amounts in paise, times in milliseconds since 1970')
  .action(async ({ merchant, limit, json }: { merchant?: string; limit: number; json?: true }) => {
    const config = readConfig(process.env)
    const merchantId = await merchantOf(config, merchant, 'payout')
    const cases = await withDatabase(config, (db) =>
      reviewCases(db, { merchantId, limit: limit + 1, keys: config.sealing }),
    )
    const shown = cases.slice(0, limit)
    const now = systemClock.now()
    if (json) for (const each of shown) print(JSON.stringify(each, paiseAsText))
    else if (shown.length === 0) print('no payout is in review')
    else print(shown.map((each) => reviewText(inLines(each), now)).join('\n\n'))
    if (cases.length > limit) note(`there are more; --limit ${limit} shows only the first`)
  })
