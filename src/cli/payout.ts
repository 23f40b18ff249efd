import { createInterface } from 'node:readline/promises'
import { Command } from 'commander'
import { type Config, readConfig } from '../config/config.ts'
import { openLedger } from '../main.ts'
import { type CancelOutcome, cancelPayout, previewCancel } from '../operations/cancel-payout.ts'
import { findPayout, tellPayout } from '../operations/payout-story.ts'
import { storyText } from '../operations/story-text.ts'
import type { State } from '../payout/states.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { systemIds } from '../platform/ids.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLogger } from '../platform/log.ts'
import { connectDatabase, type Database } from '../platform/postgres.ts'

/** For the search by agentpayOrderId, which no index helps. */
const SEARCH_MS = 120_000

const show = new Command('show')
  .description(
    'tell the whole story of one payout: what was asked for, every attempt and transition, the evidence',
  )
  .argument('<id>', 'payoutId, or else order number or agentpayOrderId')
  .option('--merchant <id>', 'whose payout it is; may be left out where there is one merchant')
  .option('--json', 'print it as JSON: amounts in paise, times in milliseconds since 1970')
  .action(async (id: string, options: { merchant?: string; json?: true }) => {
    const config = readConfig(process.env)
    await withDatabase(config, async (db) => {
      const { key, by } = await find(db, merchantOf(config, options.merchant), id)
      const story = await tellPayout(db, key, config.sealing)
      if (options.json) return console.log(JSON.stringify(story, paiseAsText, 2))
      if (by !== 'payoutId') console.log(`found by its ${by}`)
      console.log(storyText(story))
    })
  })

type CancelOptions = { merchant?: string; reason: string; by: string; dryRun?: true; yes?: true }

const cancel = new Command('cancel')
  .description('cancel a payout that the gateway cannot have; one that it may have goes to review')
  .argument('<id>', 'payoutId, or else order number or agentpayOrderId')
  .option('--merchant <id>', 'whose payout it is; may be left out where there is one merchant')
  .requiredOption('--reason <text>', 'why; kept in the history')
  .requiredOption('--by <name>', 'who decides; kept in the history')
  .option('--dry-run', 'say what it would do, and do nothing')
  .option('--yes', 'do not ask on the terminal')
  .action(async (id: string, { merchant, reason, by, dryRun, yes }: CancelOptions) => {
    const config = readConfig(process.env)
    const request = await withDatabase(config, async (db) => {
      const { key } = await find(db, merchantOf(config, merchant), id)
      const request = { ...key, by, reason }
      const expected = await previewCancel(request, db)
      if (dryRun) console.log(`payout ${key.payoutId} ${inWords(expected, 'would be')}; nothing was done`)
      else if (yes || !process.stdin.isTTY) return request
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
  .description('look at one payout, or cancel it')
  .addCommand(show)
  .addCommand(cancel)

/** A JSON number need not hold an amount exactly. */
const paiseAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)

async function withDatabase<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T> {
  const db = connectDatabase({
    url: config.databaseUrl,
    connections: 1,
    applicationName: 'payoutd payout',
    transactionTimeoutMs: SEARCH_MS,
  })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

function merchantOf({ merchants }: Config, given: string | undefined): string {
  if (given !== undefined) return given
  const [only, ...others] = merchants.keys()
  if (only === undefined || others.length > 0) {
    throw new ExpectedFailure(`whose payout? give --merchant, one of ${[...merchants.keys()].join(', ')}`)
  }
  return only
}

async function find(db: Database, merchantId: string, id: string) {
  const found = await findPayout(db, merchantId, id)
  if (found) return found
  throw new ExpectedFailure(
    `merchant ${merchantId} has no payout with the payoutId, order number or agentpayOrderId ${id}`,
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
      return 'a person decides about it there'
    case 'held':
    case 'queued':
    case 'paid':
    case 'failed':
    case 'rejected':
    case 'cancelled':
      return 'it has ended already'
  }
}

async function agreed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}
