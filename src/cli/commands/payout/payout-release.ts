import { Command, Option } from 'commander'
import { type Config, readConfig } from '../../../config/config.ts'
import { HOLD_REASONS, type HoldReason } from '../../../domain/commands/holds.ts'
import {
  isReleased,
  previewRelease,
  type ReleaseOutcome,
  releasePayouts,
} from '../../../operators/release-payouts.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import { tellPayout } from '../../../queries/payout-story.ts'
import { requestText } from '../../../queries/request.ts'
import { heldOfBatch } from '../../../queries/sql/payouts/holds.ts'
import { visible } from '../../../text/text.ts'
import { LISTED } from '../../../views/each-text.ts'
import { releaseText } from '../../../views/release-text.ts'
import { decide } from '../../decide.ts'
import { type ActReport, type DecisionOptions, withDecision } from '../../decision.ts'
import { merchantOf, payPeriodOf } from '../../options/merchant-of.ts'
import { inLines } from '../../print.ts'
import { PAYOUT_ID, payoutsOf, WHOSE_PAYOUT } from './payout-of.ts'

type ReleaseOptions = DecisionOptions & {
  merchant?: string
  batch?: string
  heldFor?: HoldReason[]
  besides?: string[]
}

export const releaseCommand = withDecision(
  new Command('release')
    .description(
      'release payouts that payoutd holds as duplicate, duplicate-file or beneficiary-changed; payoutd then queues them',
    )
    .argument('[ids...]', PAYOUT_ID)
    .option('--batch <id>', 'all held payouts of this batch')
    .addOption(
      new Option(
        '--held-for <reasons...>',
        'with --batch: only payouts held for these reasons and no other',
      ).choices(HOLD_REASONS),
    )
    .option(
      '--besides <payoutIds...>',
      'with --yes: other payouts of the same amount to the same beneficiary that you know of, apart from those that the holds name',
    )
    .option('--merchant <id>', WHOSE_PAYOUT),
).action(async (ids: string[], options: ReleaseOptions) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'payout')
  const { by, reason, batch, heldFor, besides, yes } = options
  if (heldFor && batch === undefined) throw new ExpectedFailure('--held-for needs --batch')
  if (besides && !yes) throw new ExpectedFailure('--besides needs --yes: without it payoutd shows them all')
  const payPeriod = payPeriodOf(config, merchantId)
  await decide(config, options, {
    find: async (db) => ({
      ...{ merchantId, by, reason, payPeriod, known: yes ? (besides ?? []) : null, shown: null },
      payoutIds: await payoutsOf(db, merchantId, ids, batch, async (batchId) => {
        const found = await db.run(heldOfBatch, {
          merchantId,
          batchId,
          reasons: heldFor ?? [...HOLD_REASONS],
        })
        if (found.length > 0) return found
        throw new ExpectedFailure(`merchant ${merchantId} has no such payout in batch ${visible(batchId)}`)
      }),
    }),
    // Ask if some can be released; the act is done when all are.
    preview: async (request, db) => {
      const expected = await previewRelease(request, db)
      const asked = await askedFor(db, merchantId, expected, config)
      const isDone = expected.some(isReleased)
      return { ...reportOf(expected, 'would be', asked), isDone, shown: { ...request, shown: expected } }
    },
    execute: async (request, ledger) => {
      const outcomes = await releasePayouts(request, ledger)
      return { ...reportOf(outcomes, 'is'), isDone: outcomes.every(isReleased) }
    },
  })
})

const reportOf = (
  outcomes: ReleaseOutcome[],
  be: 'is' | 'would be',
  askedFor?: ReadonlyMap<string, string>,
): ActReport => ({
  // The others are only counted; inLines would copy millions of entries where thousands pay the same.
  text: releaseText([...inLines(outcomes.slice(0, LISTED)), ...outcomes.slice(LISTED)], be, askedFor),
  json: { payouts: outcomes.map(withFirstOthers) },
})

/**
 * With the first of its other payments, and how many more there are; `payout show --json` has them all. Where all of 13,000 payouts
 * pay the same, no string could hold them.
 */
const withFirstOthers = (outcome: ReleaseOutcome): object => {
  if (!('otherPayments' in outcome)) return outcome
  const { found, thereMayBeMore } = outcome.otherPayments
  const first = found.slice(0, LISTED)
  return { ...outcome, otherPayments: { found: first, more: found.length - first.length, thereMayBeMore } }
}

/** What the first ones ask for. */
async function askedFor(
  db: Database,
  merchantId: string,
  outcomes: readonly ReleaseOutcome[],
  { sealing }: Config,
): Promise<Map<string, string>> {
  const asked = new Map<string, string>()
  for (const { payoutId } of outcomes.slice(0, LISTED)) {
    asked.set(payoutId, requestText(inLines(await tellPayout(db, { merchantId, payoutId }, sealing))))
  }
  return asked
}
