import { Command, InvalidArgumentError, Option } from 'commander'
import { readConfig } from '../config/config.ts'
import { openLedger } from '../main.ts'
import { type CancelOutcome, cancelPayout, previewCancel } from '../operations/cancel-payout.ts'
import { listText } from '../operations/list-text.ts'
import { findPayout, tellPayout } from '../operations/payout-story.ts'
import { payoutsInStates, payoutsOfBatch } from '../operations/sql/list.ts'
import { storyText } from '../operations/story-text.ts'
import { isEnd, STATES, type State } from '../payout/states.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { systemIds } from '../platform/ids.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLogger } from '../platform/log.ts'
import type { Database } from '../platform/postgres.ts'
import { agreed } from './agreed.ts'
import { merchantOf } from './merchant-of.ts'
import { withDatabase } from './with-database.ts'

const ID = 'payoutId, order number, agentpayOrderId, or batch/reference of a row of a payroll file'
const WHOSE = 'whose payout it is; may be left out where there is one merchant'

const show = new Command('show')
  .description(
    'tell the whole story of one payout: what was asked for, every attempt and transition, the evidence',
  )
  .argument('<id>', ID)
  .option('--merchant <id>', WHOSE)
  .option('--json', 'print it as JSON: amounts in paise, times in milliseconds since 1970')
  .action(async (id: string, options: { merchant?: string; json?: true }) => {
    const config = readConfig(process.env)
    await withDatabase(config, async (db) => {
      const { key, by } = await find(db, merchantOf(config, options.merchant, 'payout'), id)
      const story = await tellPayout(db, key, config.sealing)
      if (options.json) return console.log(JSON.stringify(story, paiseAsText, 2))
      if (by !== 'payoutId') console.log(`found by its ${by}`)
      console.log(storyText(story))
    })
  })

const list = new Command('list')
  .description('list payouts in the order in which they were taken in')
  .option('--merchant <id>', WHOSE)
  .option('--batch <id>', 'only those of this batch')
  .addOption(
    new Option(
      '--state <states...>',
      'only those in these states; without --batch: what has not ended',
    ).choices(STATES),
  )
  .option('--limit <count>', 'at most so many', countOf, 100)
  .option('--json', 'print each as a line of JSON: amounts in paise, times in milliseconds since 1970')
  .action(async ({ merchant, batch, state, limit, json }: ListOptions) => {
    const config = readConfig(process.env)
    const merchantId = merchantOf(config, merchant, 'payout')
    const states = state ?? (batch === undefined ? STATES.filter((each) => !isEnd(each)) : [...STATES])
    const payouts = await withDatabase(config, (db) =>
      batch === undefined
        ? db.run(payoutsInStates, { merchantId, states, limit: limit + 1 })
        : db.run(payoutsOfBatch, { merchantId, batchId: batch, states, limit: limit + 1 }),
    )
    const shown = payouts.slice(0, limit)
    if (json) for (const payout of shown) console.log(JSON.stringify(payout, paiseAsText))
    else console.log(shown.length > 0 ? listText(shown) : 'none')
    if (payouts.length > limit) console.error(`there are more: --limit ${limit} shows the first`)
  })

type ListOptions = { merchant?: string; batch?: string; state?: State[]; limit: number; json?: true }

function countOf(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number up to 999999.')
  return Number(text)
}

type CancelOptions = { merchant?: string; reason: string; by: string; dryRun?: true; yes?: true }

const cancel = new Command('cancel')
  .description(
    'cancel a payout that waits; one of which the gateway may have an earlier attempt goes to review, and one under way is too late to cancel',
  )
  .argument('<id>', ID)
  .option('--merchant <id>', WHOSE)
  .requiredOption('--reason <text>', 'why; kept in the history')
  .requiredOption('--by <name>', 'who decides; kept in the history')
  .option('--dry-run', 'say what it would do, and do nothing')
  .option('--yes', 'do not ask; needed where there is no terminal')
  .action(async (id: string, { merchant, reason, by, dryRun, yes }: CancelOptions) => {
    const config = readConfig(process.env)
    const request = await withDatabase(config, async (db) => {
      const { key } = await find(db, merchantOf(config, merchant, 'payout'), id)
      const request = { ...key, by, reason }
      const expected = await previewCancel(request, db)
      if (dryRun) console.log(`payout ${key.payoutId} ${inWords(expected, 'would be')}; nothing was done`)
      else if (yes) return request
      else if (!process.stdin.isTTY) throw new ExpectedFailure('there is no terminal to ask on: give --yes')
      else if (await agreed(`payout ${key.payoutId} ${inWords(expected, 'would be')}. Go on?`)) return request
      else console.log('nothing was done')
      return null
    })
    if (!request) return
    const lifecycle = new Lifecycle(createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 }))
    try {
      const { ledger } = await openLedger(config, lifecycle, systemIds)
      const outcome = await cancelPayout(request, ledger)
      console.log(`payout ${request.payoutId} ${inWords(outcome, 'is')}`)
      if (outcome.kind === 'too-late') process.exitCode = 1
    } finally {
      await lifecycle.stop()
    }
  })

export const payoutCommand = new Command('payout')
  .description('look at payouts, or cancel one')
  .addCommand(list)
  .addCommand(show)
  .addCommand(cancel)

/** A JSON number need not hold an amount exactly. */
const paiseAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)

async function find(db: Database, merchantId: string, id: string) {
  const found = await findPayout(db, merchantId, id)
  if (found) return found
  throw new ExpectedFailure(
    `merchant ${merchantId} has no payout with the payoutId, order number, agentpayOrderId or batch/reference ${id}`,
  )
}

/** Completes "payout p-1 …". */
function inWords(outcome: CancelOutcome, be: 'is' | 'would be'): string {
  switch (outcome.kind) {
    case 'cancelled':
      return `${be} cancelled: it was ${outcome.from} and never sent`
    case 'review':
      return `${be} put in review: it was ${outcome.from}, but an attempt was made that the gateway may hold, so a person decides`
    case 'too-late':
      return `stays ${outcome.state}: ${tooLate(outcome.state)}`
    case 'unknown':
      return 'is gone from the ledger'
  }
}

function tooLate(state: State): string {
  switch (state) {
    case 'submitting':
    case 'unknown':
    case 'processing':
      return 'the gateway may have it, so it is too late to cancel; its outcome is found out as ever'
    case 'review':
      return 'a person decides about it'
    case 'held':
    case 'queued':
    case 'paid':
    case 'failed':
    case 'rejected':
    case 'cancelled':
      return 'it has ended already'
  }
}
