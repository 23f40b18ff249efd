import { Command } from 'commander'
import { readConfig } from '../config/config.ts'
import { type CancelOutcome, cancelPayouts, previewCancel } from '../operations/cancel-payouts.ts'
import { cancelText, isStopped } from '../operations/cancel-text.ts'
import { openOfBatch } from '../operations/sql/find.ts'
import { isEnd, STATES } from '../payout/states.ts'
import { decide } from './decide.ts'
import { type DecisionOptions, type Told, withDecision } from './decision.ts'
import { merchantOf } from './merchant-of.ts'
import { PAYOUT_ID, payoutsOf, WHOSE_PAYOUT } from './payout-of.ts'
import { inLines } from './print.ts'

const OPEN = STATES.filter((each) => !isEnd(each))

export const cancelCommand = withDecision(
  new Command('cancel')
    .description(
      'cancel payouts that wait; one of which the gateway may have an earlier attempt goes to review, and one under way is too late to cancel',
    )
    .argument('[ids...]', PAYOUT_ID)
    .option('--batch <id>', 'all of this batch that have not ended')
    .option('--merchant <id>', WHOSE_PAYOUT),
).action(async (ids: string[], options: DecisionOptions & { merchant?: string; batch?: string }) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'payout')
  const { by, reason, batch } = options
  await decide(config, options, {
    find: async (db) => ({
      ...{ merchantId, by, reason },
      payoutIds: await payoutsOf(db, merchantId, ids, batch, (batchId) =>
        db.run(openOfBatch, { merchantId, batchId, states: OPEN }),
      ),
    }),
    // Some are worth to be asked about; it is done when all are.
    preview: async (request, db) => {
      const expected = await previewCancel(request, db)
      return { ...told(expected, 'would be'), isDone: expected.some(isStopped) }
    },
    deed: async (request, ledger) => {
      const outcomes = await cancelPayouts(request, ledger)
      return { ...told(outcomes, 'is'), isDone: outcomes.every(isStopped) }
    },
  })
})

const told = (outcomes: CancelOutcome[], be: 'is' | 'would be'): Told => ({
  text: cancelText(inLines(outcomes), be),
  json: { payouts: outcomes },
})
