import { Command } from 'commander'
import { readConfig } from '../../../config/config.ts'
import { isEnd, STATES } from '../../../domain/payout/states.ts'
import { CANCELS_KEPT_DAYS } from '../../../ledger/sql/cancels.ts'
import { type BatchSize, cancelBatch, readBatchSize } from '../../../operators/cancel-batch.ts'
import { type CancelOutcome, cancelPayouts, previewCancel } from '../../../operators/cancel-payouts.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import { openOfBatch } from '../../../queries/sql/payouts/find.ts'
import { batchText, cancelText, isHeeded, isKnownBatch, isStopped } from '../../../views/cancel-text.ts'
import { type DecisionResult, decide } from '../../decide.ts'
import { type ActReport, type DecisionOptions, withDecision } from '../../decision.ts'
import { merchantOf } from '../../options/merchant-of.ts'
import { inLines } from '../../print.ts'
import { PAYOUT_ID, payoutsOf, WHOSE_PAYOUT } from './payout-of.ts'

const OPEN = STATES.filter((each) => !isEnd(each))

export const cancelCommand = withDecision(
  new Command('cancel')
    .description(
      'cancel payouts that wait; a payout goes to review if the gateway may have an earlier attempt, and one in flight is not sent again. One that the ledger does not have yet is cancelled when it arrives',
    )
    .argument('[ids...]', PAYOUT_ID)
    .option(
      '--batch <id>',
      `all payouts of this batch that have not ended, and those that arrive in the next ${CANCELS_KEPT_DAYS} days`,
    )
    .option('--merchant <id>', WHOSE_PAYOUT),
).action(async (ids: string[], options: DecisionOptions & { merchant?: string; batch?: string }) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'payout')
  const { by, reason, batch } = options
  const open = async (db: Database, batchId: string) =>
    db.run(openOfBatch, { merchantId, batchId, states: OPEN })
  await decide(config, options, {
    find: async (db) => ({
      ...{ merchantId, by, reason },
      payoutIds: await payoutsOf(db, merchantId, ids, batch, (batchId) => open(db, batchId), {
        orToCome: true,
      }),
    }),
    // Ask if some can be cancelled; the act is done when all are.
    preview: async (request, db) => {
      const expected = await previewCancel(request, db)
      const size = batch === undefined ? null : await readBatchSize(merchantId, batch, db)
      // More may arrive for any batch: from Kafka, or from a file that is published next.
      const isDone = expected.some(isHeeded) || size !== null
      // The cancellation applies to any state: a request to cancel is never refused because a payout moved.
      return { ...reportOf(expected, size, 'would be'), isDone, shown: request }
    },
    execute: async (request, ledger) => {
      if (batch === undefined) return done(await cancelPayouts(request, ledger), null)
      await cancelBatch({ merchantId, batchId: batch, by, reason }, ledger)
      const payoutIds = (await open(ledger.db, batch)).map(({ payoutId }) => payoutId)
      const outcomes = await cancelPayouts({ ...request, payoutIds }, ledger)
      return done(outcomes, await readBatchSize(merchantId, batch, ledger.db))
    },
  })
})

const done = (outcomes: CancelOutcome[], size: BatchSize | null): DecisionResult => ({
  ...reportOf(outcomes, size, 'is'),
  isDone: outcomes.every(isStopped) && (size === null || (isKnownBatch(size) && size.paid === 0n)),
})

const reportOf = (outcomes: CancelOutcome[], size: BatchSize | null, be: 'is' | 'would be'): ActReport => {
  const lines = [
    ...(outcomes.length > 0 ? [cancelText(inLines(outcomes), be)] : []),
    ...(size ? [batchText(inLines(size), outcomes.length, be)] : []),
  ]
  return { text: lines.join('\n'), json: { payouts: outcomes, ...(size ? { batch: size } : {}) } }
}
