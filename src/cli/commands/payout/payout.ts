import { Command, Option } from 'commander'
import { readConfig } from '../../../config/config.ts'
import { awaitsRelease } from '../../../domain/commands/holds.ts'
import type { PayPeriod } from '../../../domain/commands/pay-period.ts'
import { isEnd, STATES, type State } from '../../../domain/payout/states.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import { batchTotals, batchTotalsText } from '../../../queries/batch-totals.ts'
import { payoutsInStates } from '../../../queries/list-payouts.ts'
import { NO_OTHER_PAYMENTS, type OtherPayments, otherPaymentsOfOne } from '../../../queries/other-payments.ts'
import { type PayoutStory, tellPayout } from '../../../queries/payout-story.ts'
import { type Listed, openPayoutsInStates, payoutsOfBatch } from '../../../queries/sql/payouts/list.ts'
import { listText } from '../../../views/list-text.ts'
import { storyText } from '../../../views/story-text.ts'
import { countOf } from '../../options/count-of.ts'
import { merchantOf, payPeriodOf } from '../../options/merchant-of.ts'
import { paiseAsText } from '../../options/paise-as-text.ts'
import { inLines, note, print } from '../../print.ts'
import { withDatabase } from '../../with-database.ts'
import { cancelCommand } from './payout-cancel.ts'
import { PAYOUT_ID, payoutOf, WHOSE_PAYOUT } from './payout-of.ts'
import { releaseCommand } from './payout-release.ts'
import { resolveCommand } from './payout-resolve.ts'
import { reverseCommand } from './payout-reverse.ts'
import { reviewCommand } from './payout-review.ts'

const show = new Command('show')
  .description(
    'show the history of one payout: the request, every attempt and state change, with the evidence',
  )
  .argument('<id>', PAYOUT_ID)
  .option('--merchant <id>', WHOSE_PAYOUT)
  .option('--json', 'print JSON; amounts in paise, times in milliseconds since 1970')
  .action(async (id: string, options: { merchant?: string; json?: true }) => {
    const config = readConfig(process.env)
    await withDatabase(config, async (db) => {
      const { key, by } = await payoutOf(db, await merchantOf(config, options.merchant, 'payout'), id)
      const story = await tellPayout(db, key, config.sealing)
      const others = await besides(db, story, payPeriodOf(config, key.merchantId))
      if (options.json) return print(JSON.stringify({ ...story, otherPayments: others }, paiseAsText, 2))
      if (by !== 'payoutId') print(`found by its ${by}`)
      print(storyText(inLines(story), inLines(others)))
    })
  })

/** What else pays the same by now as a payout that waits for a release, or for a person to send it again. */
async function besides(db: Database, { payout }: PayoutStory, payPeriod: PayPeriod): Promise<OtherPayments> {
  if (!awaitsRelease(payout) && payout.state !== 'review') return NO_OTHER_PAYMENTS
  return otherPaymentsOfOne(db, payout, payPeriod, systemClock.now())
}

const list = new Command('list')
  .description('list payouts in the order in which payoutd accepted them')
  .option('--merchant <id>', WHOSE_PAYOUT)
  .option('--batch <id>', 'only payouts of this batch')
  .addOption(
    new Option(
      '--state <states...>',
      'only payouts in these states; by default all of the batch, or without --batch those that have not ended',
    ).choices(STATES),
  )
  .option('--limit <count>', 'the most to show', countOf, 100)
  .option('--json', 'print one JSON object per line; amounts in paise, times in milliseconds since 1970')
  .action(async ({ merchant, batch, state, limit, json }: ListOptions) => {
    const config = readConfig(process.env)
    const merchantId = await merchantOf(config, merchant, 'payout')
    const states = state ?? (batch === undefined ? STATES.filter((each) => !isEnd(each)) : [...STATES])
    const { payouts, totals } = await withDatabase(config, async (db) => {
      const asked = { merchantId, states, limit: limit + 1 }
      if (batch !== undefined) return ofBatch(db, { ...asked, batchId: batch })
      const payouts = states.some(isEnd)
        ? await payoutsInStates(db, asked)
        : await db.run(openPayoutsInStates, asked)
      return { payouts, totals: null }
    })
    const shown = payouts.slice(0, limit)
    if (json) for (const payout of shown) print(JSON.stringify(payout, paiseAsText))
    else print(shown.length > 0 ? listText(inLines(shown)) : 'none')
    if (payouts.length > limit) note(`there are more; --limit ${limit} shows only the first`)
    if (totals !== null) note(totals)
  })

/** Adds, for people, what its files declared and what the ledger has. Throws an ExpectedFailure for a batch without payouts. */
async function ofBatch(
  db: Database,
  asked: { merchantId: string; batchId: string; states: State[]; limit: number },
): Promise<{ payouts: Listed[]; totals: string | null }> {
  const { merchantId, batchId } = asked
  const totals = batchTotalsText(await batchTotals(db, { merchantId, batchId }))
  const payouts = await db.run(payoutsOfBatch, asked)
  if (payouts.length > 0) return { payouts, totals }
  const [any] = await db.run(payoutsOfBatch, { merchantId, batchId, states: [...STATES], limit: 1 })
  if (any) return { payouts, totals }
  const declared = totals === null ? '' : ` (${totals})`
  throw new ExpectedFailure(
    `merchant ${merchantId} has no payout of batch ${batchId}${declared}: payoutd dlq list shows commands that payoutd could not accept`,
  )
}

type ListOptions = { merchant?: string; batch?: string; state?: State[]; limit: number; json?: true }

export const payoutCommand = new Command('payout')
  .addCommand(list)
  .addCommand(show)
  .addCommand(releaseCommand)
  .addCommand(reviewCommand)
  .addCommand(resolveCommand)
  .addCommand(reverseCommand)
  .addCommand(cancelCommand)
