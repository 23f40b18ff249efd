import { Command } from 'commander'
import { readConfig } from '../config/config.ts'
import {
  previewReverse,
  type ReverseOutcome,
  type ReverseRequest,
  reversePayout,
} from '../operations/reversal.ts'
import { formatTime } from '../operations/times.ts'
import { formatRupees } from '../payout/money.ts'
import {
  consented,
  type DecisionOptions,
  type Told,
  tellDone,
  tellRefused,
  withDecision,
} from './decision.ts'
import { merchantOf } from './merchant-of.ts'
import { PAYOUT_ID, payoutOf, WHOSE_PAYOUT } from './payout-of.ts'
import { withDatabase } from './with-database.ts'
import { withLedger } from './with-ledger.ts'

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
  const merchantId = merchantOf(config, options.merchant, 'payout')
  const request = await withDatabase(config, async (db) => {
    const { key } = await payoutOf(db, merchantId, id)
    const { by, reason, anomaly } = options
    const request = { ...key, by, reason, anomalyId: anomaly ?? null }
    const outcome = await previewReverse(request, db)
    const would = told(request, outcome, 'would be')
    if (outcome.kind === 'reversed') return (await consented(would, options)) ? request : null
    tellRefused(would, options)
    return null
  })
  if (!request) return
  const outcome = await withLedger(config, (ledger) => reversePayout(request, ledger))
  const did = told(request, outcome, 'is')
  if (outcome.kind === 'reversed') tellDone(did, options)
  else tellRefused(did, options)
})

function told({ payoutId }: ReverseRequest, outcome: ReverseOutcome, be: 'is' | 'would be'): Told {
  return { text: `payout ${payoutId} ${inWords(outcome, be)}`, json: { payoutId, ...outcome } }
}

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
