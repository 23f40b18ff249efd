import { statSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { Presets, SingleBar } from 'cli-progress'
import { Command, InvalidArgumentError } from 'commander'
import { openCommandsTopic } from '../../batches/commands-topic.ts'
import type { PayrollTotals, Summary } from '../../batches/file/check-file.ts'
import { type Ingested, ingest } from '../../batches/ingest.ts'
import {
  type Compared,
  cancellationOf,
  compareWithBatch,
  type OverlapComparison,
} from '../../batches/overlap.ts'
import { doubtLines, isSettled, report, reportJson } from '../../batches/report.ts'
import type { Config } from '../../config/config.ts'
import type { Merchant } from '../../config/merchants.ts'
import { isIdentifier } from '../../domain/commands/validate.ts'
import type { Paise } from '../../domain/money.ts'
import { rupeesToPaise } from '../../domain/rupees.ts'
import { withAccount } from '../../gateway/dialect/account.ts'
import { recordAct } from '../../ledger/acts.ts'
import { topicNames } from '../../messages/topics.ts'
import { TAKEN_TODO, takenTexts } from '../../operators/shared-accounts.ts'
import { inWords } from '../../platform/dependency-fault.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { createLogger } from '../../platform/log.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { whoami } from '../../platform/whoami.ts'
import { agreed } from '../agreed.ts'
import { nameOf, said } from '../decision.ts'
import { pathOf } from '../options/path-of.ts'
import { note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'

/** The part of the configuration that ingest needs. */
export type IngestConfig = Pick<
  Config,
  'databaseUrl' | 'fingerprintKey' | 'kafka' | 'registry' | 'topicPrefix' | 'merchants' | 'logLevel'
>

type IngestOptions = {
  batch: string
  by?: string
  reason?: string
  merchant?: string
  expectRows?: number
  expectAmount?: Paise
  referenceFrom?: string[]
  publishValidRows?: true
  dryRun?: true
  yes?: true
  json?: true
}

const CHECKPOINTS = '.payoutd/ingest'
const REFUSED = 3
const INTERRUPTED = 130

/**
 * `payoutd ingest FILE`. Exit codes: 0 everything payable is published (or would be), 3 the file is refused and nothing is
 * published, 130 interrupted, 1 anything else.
 */
export const ingestCommand = (deps: { readConfig: () => IngestConfig }): Command =>
  new Command('ingest')
    .argument('<file>', 'CSV in UTF-8', pathOf)
    .requiredOption(
      '--batch <id>',
      'the name of this payroll (salary-2026-11); payoutd pays each reference in it once, however often you ingest it',
      identifier,
    )
    .option('--merchant <id>', 'the merchant that pays; you can omit it if there is only one merchant')
    .option('--expect-rows <n>', 'refuse the file unless it has this many rows', wholeNumber)
    .option('--expect-amount <rupees>', 'refuse the file unless its rows add up to this amount', rupees)
    .option(
      '--reference-from <columns>',
      'columns, separated by commas, that form the reference if there is no reference column',
      list,
    )
    .option('--publish-valid-rows', 'publish the valid rows even if other rows are refused')
    .option('--dry-run', 'check everything and publish nothing')
    .option(
      '--yes',
      'do not ask if the batch already has other payouts or the file may be cut off; needed in these cases if there is no terminal',
    )
    .option(
      '--by <name>',
      'who publishes it, for the record; by default the user of the operating system',
      nameOf,
    )
    .option('--reason <text>', 'why, for the record', said)
    .option('--json', 'print the outcome as one line of JSON; amounts in paise')
    .action(async (file: string, options: IngestOptions) => {
      keepHeapSmall()
      const ingested = await run(file, options, deps.readConfig())
      print(options.json ? reportJson(ingested) : report(ingested))
      process.exitCode = exitCode(ingested)
    })

function exitCode(ingested: Ingested): number {
  if (ingested.kind === 'interrupted' || ingested.kind === 'stopped') return INTERRUPTED
  return isSettled(ingested) ? 0 : REFUSED
}

async function run(file: string, options: IngestOptions, config: IngestConfig): Promise<Ingested> {
  const [merchantId, merchant] = merchantOf(config, options.merchant)
  const { limits } = merchant
  const bytes = sizeOf(file)
  await refuseTaken(merchantId, config)
  const bar = new ProgressBar(process.stderr.isTTY && !options.json)
  const abort = new AbortController()
  const stop = () => abort.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  const log = createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 })
  const topics = topicNames(config.topicPrefix)
  const record = recorder(merchantId, options, config)
  let begun: Summary | undefined
  try {
    const ingested = await ingest(
      {
        payroll: {
          path: file,
          batch: { merchantId, batchId: options.batch, limits },
          referenceFrom: options.referenceFrom ?? [],
        },
        expected: { rows: options.expectRows ?? null, amount: options.expectAmount ?? null },
        publishValidRows: options.publishValidRows ?? false,
        dryRun: options.dryRun ?? false,
      },
      {
        openCommandsTopic: () =>
          openCommandsTopic({ kafka: config.kafka, registry: config.registry, topics, log }),
        checkpointFolder: CHECKPOINTS,
        compare: (compared) => compare(compared, config, abort.signal),
        cancellation: () =>
          ifAnswered(config, (db) => cancellationOf({ merchantId, batchId: options.batch }, db)),
        agrees: async (doubts) => {
          bar.end()
          return options.yes ?? asked(doubtLines(doubts), options.batch)
        },
        onBegin: async (summary) => {
          await record(summary, null)
          begun = summary
        },
        clock: systemClock,
        signal: abort.signal,
        onBytes: (read) => bar.show('checking', read, bytes),
        onPublished: (rows, of) => bar.show('publishing', rows, of),
      },
    )
    if (begun) await record(begun, ingested)
    return ingested
  } finally {
    bar.end()
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

/** Throws an ExpectedFailure for a merchant whom no payoutd would serve. A ledger that does not answer is no failure. */
async function refuseTaken(merchantId: string, config: IngestConfig): Promise<void> {
  const all = [...config.merchants.values()].map(withAccount)
  const configured = all.filter((each) => each.merchantId === merchantId)
  const taken = await ifAnswered(config, (db) => takenTexts(db, configured, all))
  if (taken?.length) throw new ExpectedFailure(`${taken.join('; ')}. Nothing was published. ${TAKEN_TODO}`)
}

/** Records who publishes which file before the act, and its result afterwards; publishing itself needs only Kafka. */
function recorder(
  merchantId: string,
  { by, reason, batch }: IngestOptions,
  config: IngestConfig,
): (summary: Summary, ingested: Ingested | null) => Promise<void> {
  const act = {
    command: 'ingest',
    by: by ?? nameOf(whoami().osUser),
    reason: reason ?? 'no reason was given',
    ...{ merchantId, subjects: [batch] },
  }
  return async ({ fileHash, payable, refused }, ingested) => {
    const file = { fileHash, payable: inPaise(payable), refused: inPaise(refused) }
    const [before, after] =
      ingested === null ? [null, file] : [file, { ...file, ending: ingested.kind, ...publishedBy(ingested) }]
    try {
      await withDatabase(config, (db) => recordAct(db, { ...act, before, after }))
    } catch (error) {
      const failure = inWords(error, config)
      if (!(failure instanceof ExpectedFailure)) throw error
      note(`payoutd could not record who publishes this file: ${failure.message}`)
    }
  }
}

const inPaise = ({ rows, amount }: PayrollTotals) => ({ rows, amount: String(amount) })

const publishedBy = (ingested: Ingested): object =>
  ingested.kind === 'interrupted' ? { published: ingested.published } : {}

/** Without an answer from the ledger nothing is known: a person decides whether to proceed. */
async function compare(
  compared: Compared,
  config: IngestConfig,
  signal: AbortSignal,
): Promise<OverlapComparison> {
  const { fingerprintKey } = config
  try {
    return await withDatabase(config, (db) =>
      compareWithBatch(compared, { db, fingerprintKey, clock: systemClock, signal }),
    )
  } catch (error) {
    const failure = inWords(error, config)
    if (failure instanceof ExpectedFailure) return { kind: 'unknown', why: failure.message }
    throw error
  }
}

/** Kafka alone is needed to publish: a ledger that does not answer is no failure. */
async function ifAnswered<T>(config: IngestConfig, ask: (db: Database) => Promise<T>): Promise<T | null> {
  try {
    return await withDatabase(config, ask)
  } catch (error) {
    if (!(inWords(error, config) instanceof ExpectedFailure)) throw error
    return null
  }
}

async function asked(lines: readonly string[], batchId: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  note([`Batch ${batchId}:`, ...lines].join('\n'))
  return agreed('Publish the file?')
}

/**
 * V8 lets the heap of a long stream grow as far as allowed: a file of a million rows took 317 MB, and with this setting takes 187
 * MB, for half as much CPU again.
 */
function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=50')
}

function merchantOf({ merchants }: IngestConfig, given: string | undefined): [string, Merchant] {
  const ids = [...merchants.keys()]
  const id = given ?? (ids.length === 1 ? ids[0] : undefined)
  if (id === undefined)
    throw new ExpectedFailure(`which merchant pays? give --merchant, one of ${ids.join(', ')}`)
  const merchant = merchants.get(id)
  if (merchant) return [id, merchant]
  throw new ExpectedFailure(`there is no merchant ${id}; the settings have ${ids.join(', ')}`)
}

function sizeOf(file: string): number {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat?.isFile()) return stat.size
  if (!stat) throw new ExpectedFailure(`there is no file ${file}`)
  throw new ExpectedFailure(
    stat.isDirectory()
      ? `${file} is a directory`
      : `${file} is a device or a pipe; ingest reads the file twice, so it must be on disk`,
  )
}

/** One bar on the terminal for the current phase; nothing without a terminal. */
class ProgressBar {
  readonly #shown: boolean
  #phase = ''
  #bar: SingleBar | undefined

  constructor(shown: boolean) {
    this.#shown = shown
  }

  show(phase: string, done: number, of: number): void {
    if (!this.#shown) return
    if (phase !== this.#phase) {
      this.end()
      this.#phase = phase
      const format = `${phase.padEnd(10)} {bar} {percentage}%  {eta_formatted}`
      this.#bar = new SingleBar(
        { format, stream: process.stderr, clearOnComplete: true },
        Presets.shades_classic,
      )
      this.#bar.start(of, 0)
    }
    this.#bar?.update(done)
  }

  end(): void {
    this.#bar?.stop()
    this.#bar = undefined
  }
}

function identifier(text: string): string {
  if (!isIdentifier(text)) throw new InvalidArgumentError('It must be 1 to 64 of A–Z a–z 0–9 . _ : / -')
  return text
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

function rupees(text: string): Paise {
  const read = rupeesToPaise(text)
  if (read.kind === 'unreadable') throw new InvalidArgumentError(read.message)
  return read.amount
}

const list = (text: string): string[] => text.split(',').map((name) => name.trim())
