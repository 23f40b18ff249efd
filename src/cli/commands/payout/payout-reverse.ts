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
import { type PayoutStory, tellPayout } from '../../../queries/payout-story.ts'
import { lastWord } from '../../../queries/review.ts'
import { lastWordText } from '../../../views/review-text.ts'
import { type DecisionResult, decide } from '../../decide.ts'
import { type DecisionOptions, withDecision } from '../../decision.ts'
import { merchantOf } from '../../options/merchant-of.ts'
import { inLines } from '../../print.ts'
import { PAYOUT_ID, payoutOf, WHOSE_PAYOUT } from './payout-of.ts'

type ReverseOptions = DecisionOptions & { merchant?: string; anomaly?: string }

export const reverseCommand = withDecision(
  new Command('reverse')
    .description(
      'confirm that the money of a paid payout came back; the payout stays paid, and payoutd publishes the reversal',
    )
    .argument('<id>', PAYOUT_ID)
    .option('--merchant <id>', WHOSE_PAYOUT)
    .option('--anomaly <id>', 'the anomaly in which the gateway said so, if there are several'),
).action(async (id: string, options: ReverseOptions) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'payout')
  const { by, reason, anomaly } = options
  await decide(config, options, {
    find: async (db) => ({
      ...(await payoutOf(db, merchantId, id)).key,
      ...{ by, reason, anomalyId: anomaly ?? null, shown: null },
    }),
    async preview(request, db) {
      const outcome = await previewReverse(request, db)
      const shown =
        outcome.kind === 'reversed' ? { anomalyId: outcome.anomalyId, shown: outcome.evidenceCount } : {}
      const would = reportOf(request, outcome, 'would be')
      const story = would.isDone ? await tellPayout(db, request, config.sealing) : null
      const text = story ? `${would.text}\n  ${lastWordOf(story)}` : would.text
      return { ...would, text, shown: { ...request, ...shown } }
    },
    execute: async (request, ledger) => reportOf(request, await reversePayout(request, ledger), 'is'),
  })
})

const lastWordOf = (story: PayoutStory): string => lastWordText(inLines(lastWord(story)), inLines(story))

const reportOf = (
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
      return `${be} published as returned, ${formatRupees(outcome.payout.amount)}, by anomaly ${outcome.anomalyId}; it stays paid`
    case 'already':
      return `was already published as returned, by ${outcome.reversedBy} at ${formatTime(outcome.at)}: ${outcome.reason}`
    case 'not-paid':
      return `is ${outcome.state}: only a paid payout can be reversed`
    case 'no-word':
      return outcome.anomalyIds.length === 0
        ? 'is paid, and the gateway has not said since that it failed: there is nothing to confirm'
        : `has no such anomaly; the gateway said that it failed in ${outcome.anomalyIds.join(', ')}`
    case 'several':
      return `has several anomalies in which the gateway says that it failed: give --anomaly, one of ${outcome.anomalyIds.join(', ')}`
    case 'moved':
      return 'is not reversed: more evidence came after you saw it; look at it again'
    case 'unknown':
      return 'is no longer in the ledger'
  }
}
