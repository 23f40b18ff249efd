import { Command } from 'commander'
import { readConfig } from '../../../config/config.ts'
import { formatRupees } from '../../../domain/money.ts'
import { formatTime } from '../../../domain/times.ts'
import {
  previewReverse,
  type ReverseOutcome,
  type ReverseRequest,
  reversePayout,
} from '../../../operators/reversal.ts'
import { type DecisionResult, decide } from '../../decide.ts'
import { type DecisionOptions, withDecision } from '../../decision.ts'
import { merchantOf } from '../../options/merchant-of.ts'
import { inLines } from '../../print.ts'
import { PAYOUT_ID, payoutOf, WHOSE_PAYOUT } from './payout-of.ts'

type ReverseOptions = DecisionOptions & { merchant?: string; anomaly?: string }

export const reverseCommand = withDecision(
  new Command('reverse')
    .description(
      'confirm that the money of a paid payout came back; it stays paid, and the reversal is told beside its result',
    )
    .argument('<id>', PAYOUT_ID)
    .option('--merchant <id>', WHOSE_PAYOUT)
    .option('--anomaly <id>', 'the gateway’s word for it, where it said so more than once'),
).action(async (id: string, options: ReverseOptions) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'payout')
  const { by, reason, anomaly } = options
  await decide(config, options, {
    find: async (db) => ({
      ...(await payoutOf(db, merchantId, id)).key,
      ...{ by, reason, anomalyId: anomaly ?? null },
    }),
    async preview(request, db) {
      const outcome = await previewReverse(request, db)
      // Another word of the gateway that comes meanwhile was not shown.
      const anomalyId = outcome.kind === 'reversed' ? outcome.anomalyId : null
      return { ...told(request, outcome, 'would be'), shown: { ...request, anomalyId } }
    },
    execute: async (request, ledger) => told(request, await reversePayout(request, ledger), 'is'),
  })
})

const told = (
  { payoutId }: ReverseRequest,
  outcome: ReverseOutcome,
  be: 'is' | 'would be',
): DecisionResult => ({
  text: `payout ${payoutId} ${inWords(inLines(outcome), be)}`,
  json: { payoutId, ...outcome },
  isDone: outcome.kind === 'reversed',
})

/** Completes "payout p-1 …". */
function inWords(outcome: ReverseOutcome, be: 'is' | 'would be'): string {
  switch (outcome.kind) {
    case 'reversed':
      return `${be} told as returned, ${formatRupees(outcome.payout.amount)}, by anomaly ${outcome.anomalyId}; it stays paid`
    case 'already':
      return `was told as returned before, by ${outcome.reversedBy} at ${formatTime(outcome.at)}: ${outcome.reason}`
    case 'not-paid':
      return `is ${outcome.state}: only the money of a paid one can come back`
    case 'no-word':
      return outcome.anomalyIds.length === 0
        ? 'is paid, and the gateway never said that it failed after all: there is nothing to confirm'
        : `was said to have failed after all, but in another anomaly than that: ${outcome.anomalyIds.join(', ')}`
    case 'several':
      return `was said to have failed after all more than once: give --anomaly, one of ${outcome.anomalyIds.join(', ')}`
    case 'unknown':
      return 'is gone from the ledger'
  }
}
