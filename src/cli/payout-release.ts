import { Command } from 'commander'
import { readConfig } from '../config/config.ts'
import { previewRelease, type ReleaseOutcome, releasePayouts } from '../operations/release-payouts.ts'
import { isReleased, releaseText } from '../operations/release-text.ts'
import { heldOfBatch } from '../operations/sql/holds.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database } from '../platform/postgres.ts'
import { decide } from './decide.ts'
import { type DecisionOptions, type Told, withDecision } from './decision.ts'
import { merchantOf } from './merchant-of.ts'
import { PAYOUT_ID, payoutOf, WHOSE_PAYOUT } from './payout-of.ts'

type Options = DecisionOptions & { merchant?: string; batch?: string }

export const releaseCommand = withDecision(
  new Command('release')
    .description(
      'let payouts go that were held for a person: duplicate, duplicate-file or beneficiary-changed. They are queued',
    )
    .argument('[ids...]', PAYOUT_ID)
    .option('--batch <id>', 'all of this batch that wait for it')
    .option('--merchant <id>', WHOSE_PAYOUT),
).action(async (ids: string[], options: Options) => {
  const config = readConfig(process.env)
  const merchantId = merchantOf(config, options.merchant, 'payout')
  const { by, reason, batch } = options
  await decide(config, options, {
    find: async (db) => ({ merchantId, payoutIds: await named(db, merchantId, ids, batch), by, reason }),
    // Some are worth to be asked about; it is done when all are.
    preview: async (request, db) => {
      const expected = await previewRelease(request, db)
      return { ...told(expected, 'would be'), isDone: expected.some(isReleased) }
    },
    deed: async (request, ledger) => {
      const outcomes = await releasePayouts(request, ledger)
      return { ...told(outcomes, 'is'), isDone: outcomes.every(isReleased) }
    },
  })
})

const told = (outcomes: ReleaseOutcome[], be: 'is' | 'would be'): Told => ({
  text: releaseText(outcomes, be),
  json: { payouts: outcomes },
})

async function named(
  db: Database,
  merchantId: string,
  ids: readonly string[],
  batchId: string | undefined,
): Promise<string[]> {
  if (ids.length > 0 === (batchId !== undefined)) {
    throw new ExpectedFailure('which payouts? give their ids, or --batch')
  }
  if (batchId === undefined) {
    const found: string[] = []
    for (const id of ids) found.push((await payoutOf(db, merchantId, id)).key.payoutId)
    return found
  }
  const held = await db.run(heldOfBatch, { merchantId, batchId })
  if (held.length > 0) return held.map(({ payoutId }) => payoutId)
  throw new ExpectedFailure(`no payout of batch ${batchId} of merchant ${merchantId} waits for a release`)
}
