import { Command } from 'commander'
import { UnreadableFile } from '../../batches/file/csv-records.ts'
import { type Config, readConfig } from '../../config/config.ts'
import type { Merchant } from '../../config/merchants.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { Instant } from '../../domain/instant.ts'
import { formatTime } from '../../domain/times.ts'
import {
  accountWith,
  type ConnectedAccount,
  type ConnectedAccounts,
  connectAccounts,
} from '../../gateway/accounts.ts'
import { withAccount } from '../../gateway/dialect/account.ts'
import { recordAct } from '../../ledger/acts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { mixedAnswers } from '../../ledger/mixed-answers.ts'
import { demandInForce } from '../../operators/gateway-settings.ts'
import type { StatementLine } from '../../operators/reconcile/compare-statement.ts'
import {
  type AskDeps,
  type AskedAll,
  askAll,
  findReconciliation,
  openReconciliation,
} from '../../operators/reconcile/reconcile.ts'
import { agrees, reportOf, standOf } from '../../operators/reconcile/report.ts'
import type { Reconciliation } from '../../operators/reconcile/sql/reconciliations.ts'
import { readStatement } from '../../operators/reconcile/statement.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { createLogger, silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { applyEvidenceBatch } from '../../stages/outcomes/outcomes.ts'
import { count } from '../../text/table.ts'
import { reportText } from '../../views/report-text.ts'
import { agreed } from '../agreed.ts'
import { Bar } from '../bar.ts'
import { nameOf, said } from '../decision.ts'
import { merchantOf } from '../options/merchant-of.ts'
import { momentOrDateOf } from '../options/moment-of.ts'
import { paiseAsText } from '../options/paise-as-text.ts'
import { pathOf } from '../options/path-of.ts'
import { rateOf } from '../options/rate-of.ts'
import { inLines, note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'
import { withLedger } from '../with-ledger.ts'
import { WHOSE_PAYOUT } from './payout/payout-of.ts'

type ReconcileOptions = {
  from?: Instant
  to?: Instant
  resume?: string
  merchant?: string
  rate: number
  statement?: string
  settle?: true
  by?: string
  reason?: string
  yes?: true
  json?: true
}

const INTERRUPTED = 130

export const reconcileCommand = new Command('reconcile')
  .option(
    '--from <moment>',
    'payouts accepted at or after this moment: 2026-11-01, or 2026-11-01T09:30+05:30',
    momentOrDateOf,
  )
  .option('--to <moment>', 'payouts accepted before this moment', momentOrDateOf)
  .option('--resume <id>', 'continue this interrupted run; you can also give its period again')
  .option('--merchant <id>', WHOSE_PAYOUT)
  .option('--rate <count/s>', 'the most queries per second', rateOf, 10)
  .option(
    '--statement <file>',
    'also compare what was paid in the period with a statement: a CSV file with the columns utr, amount (in rupees) and, if you have it, order_no',
    pathOf,
  )
  .option('--settle', 'let the gateway’s answers change payouts that differ, as any query does')
  .option('--by <name>', 'who decides to --settle, for the record', nameOf)
  .option('--reason <text>', 'why, for the record', said)
  .option('--yes', 'do not ask before --settle; needed if there is no terminal')
  .option('--json', 'print the report as JSON; amounts in paise, times in milliseconds since 1970')
  .addHelpText(
    'after',
    `
A date alone means midnight in India (+05:30). Without --settle, payoutd changes no payout. With --resume and --settle, it
changes the payouts that the earlier run found to differ.
The exit code is 0 if everything agrees, 1 if something differs or the gateway did not answer about every payout, and
${INTERRUPTED} if interrupted.`,
  )
  .action(async (options: ReconcileOptions) => {
    demandWhoSettles(options)
    const config = readConfig(process.env)
    const lines = options.statement === undefined ? null : await statementIn(options.statement)
    await withDatabase(config, async (db) => {
      const resumed = options.resume === undefined ? null : await runNamed(options.resume, db)
      const merchantId = resumed?.merchantId ?? (await merchantOf(config, options.merchant, 'payout'))
      const asking = { options, merchant: merchantNamed(config, merchantId), resumed, db }
      const { ending, inVain, missing, run } = options.settle
        ? await withLedger(config, (ledger) => ask({ ...asking, ledger }))
        : await ask({ ...asking, ledger: null })
      const report = await reportOf(run, lines, db)
      print(
        options.json
          ? JSON.stringify({ ending, inVain, missing, agrees: agrees(report), ...report }, paiseAsText, 2)
          : reportText(inLines(report), systemClock.now()),
      )
      if (report.asked < report.listed)
        note(goOn({ ending, inVain, missing, run }, report.listed - report.asked))
      if (ending === 'interrupted') process.exitCode = INTERRUPTED
      else if (!agrees(report)) process.exitCode = 1
    })
  })

type ReconcileQuery = {
  options: ReconcileOptions
  merchant: Merchant
  resumed: Reconciliation | null
  db: Database
  /** Null without --settle. */
  ledger: Ledger | null
}

async function ask(asking: ReconcileQuery): Promise<AskedAll> {
  const { options, merchant, resumed, db, ledger } = asking
  const accounts = connectAccounts(merchant, {
    applies: 0,
    clock: systemClock,
    mixedUp: mixedAnswers(merchant.merchantId, db, silentLogger),
  })
  const abort = new AbortController()
  const stop = () => abort.abort()
  const bar = new Bar(process.stderr.isTTY && !options.json)
  try {
    if (ledger) {
      await demandInForce(db, withAccount(merchant))
      await consent(options)
    }
    const run = resumed ?? (await opened(asking, accounts[0]))
    const before = ledger && (await recordSettling(run, options, null, db))
    process.once('SIGINT', stop).once('SIGTERM', stop)
    const asked = await askAll(run, {
      db,
      query: async (mchOrderNo, accountId) =>
        accountWith(accounts, accountId)?.client.query({ mchOrderNo }) ?? null,
      settle: ledger && settling(ledger, merchant.merchantId, accounts),
      ratePerSecond: options.rate,
      clock: systemClock,
      signal: abort.signal,
      onProgress: (asked, listed) => bar.show(asked, listed),
    })
    if (before) await recordSettling(run, options, { before, ending: asked.ending }, db)
    return asked
  } finally {
    bar.end()
    process.off('SIGINT', stop).off('SIGTERM', stop)
    await Promise.all(accounts.map(({ client }) => client.close()))
  }
}

async function opened(
  { options: { from, to }, merchant: { merchantId }, db }: ReconcileQuery,
  { accountId, client }: ConnectedAccount,
): Promise<Reconciliation> {
  if (from === undefined || to === undefined || from >= to) {
    throw new ExpectedFailure('which period? give --from and a later --to, or --resume')
  }
  const period = { merchantId, accountId, from, to }
  return openReconciliation(period, { db, balance: () => client.balance() })
}

async function runNamed(id: string, db: Database): Promise<Reconciliation> {
  const run = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) ? await findReconciliation(db, id) : null
  if (run) return run
  throw new ExpectedFailure(
    `there is no reconciliation ${id}: give --from and --to, which continue an interrupted one`,
  )
}

function merchantNamed({ merchants }: Config, merchantId: string): Merchant {
  const merchant = merchants.get(merchantId)
  if (merchant) return merchant
  throw new ExpectedFailure(
    `merchant ${merchantId} is not in the settings, so payoutd cannot query its gateway`,
  )
}

/** Applies reports in the same way as the poller's queries. */
function settling(
  ledger: Ledger,
  merchantId: string,
  accounts: ConnectedAccounts,
): NonNullable<AskDeps['settle']> {
  const deps = {
    ledger,
    decisions: DECISIONS,
    queryPolicies: new Map([[merchantId, accounts[0].queryPolicy]]),
    counted: new Metrics().counter('evidence_total', 'What callbacks and queries led to', [
      'source',
      'outcome',
    ]),
    log: createLogger({ name: 'payoutd', level: 'error', destination: 2 }),
  }
  return async (mchOrderNo, answer, sentTo, askedAt) => {
    const { accountId, baseUrl, queryPolicy } = accountWith(accounts, sentTo) ?? accounts[0]
    const { settingsHash } = accounts[0]
    const asked = { accountId, baseUrl, queryPolicy, settingsHash, askedAt, presence: false }
    await applyEvidenceBatch([{ merchantId, mchOrderNo, source: 'QUERY', answer, ...asked }], deps)
  }
}

/** Throws an ExpectedFailure. */
function demandWhoSettles({ settle, by, reason }: ReconcileOptions): void {
  if (settle && (by === undefined || reason === undefined))
    throw new ExpectedFailure('--settle needs --by and --reason')
}

/** Records who settles before the first payout is settled, and the result afterwards. Returns the state of the run. */
async function recordSettling(
  run: Reconciliation,
  { by = '', reason = '' }: ReconcileOptions,
  ended: { before: object; ending: AskedAll['ending'] } | null,
  db: Database,
): Promise<object> {
  const { reconciliationId, merchantId, periodFrom, periodTo } = run
  const stand = await standOf(run, db)
  const act = { command: 'reconcile --settle', by, reason, merchantId, subjects: [reconciliationId] }
  const period = { periodFrom, periodTo }
  await recordAct(
    db,
    ended
      ? {
          ...act,
          before: { ...period, ...ended.before },
          after: { ...period, ...stand, ending: ended.ending },
        }
      : { ...act, before: { ...period, ...stand }, after: null },
  )
  return stand
}

async function consent({ yes }: ReconcileOptions): Promise<void> {
  if (yes) return
  if (!process.stdin.isTTY) throw new ExpectedFailure('there is no terminal to ask on: give --yes')
  const question = 'The gateway’s answers would change payouts that differ. Go on?'
  if (!(await agreed(question))) throw new ExpectedFailure('nothing was done')
}

async function statementIn(file: string): Promise<StatementLine[]> {
  try {
    return await readStatement(file)
  } catch (error) {
    if (error instanceof UnreadableFile) {
      throw new ExpectedFailure(`the statement cannot be read:\n${error.faults.join('\n')}`, { cause: error })
    }
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new ExpectedFailure(`the statement ${file} cannot be read (${code})`, { cause: error })
  }
}

/** `unanswered`: payouts of the run's list without an answer from the gateway, whether payoutd asked about them or not. */
function goOn({ ending, inVain, missing, run }: AskedAll, unanswered: number): string {
  const period = `${formatTime(run.periodFrom)} to ${formatTime(run.periodTo)}`
  const again = `run the same command again, or use --resume ${run.reconciliationId}, to continue this run of ${period}`
  const lacking =
    missing.length > 0 ? `; the settings lack account ${missing.join(', ')}: add it to formerAccounts` : ''
  const left = `queried without an answer: ${count(inVain)}, not yet queried: ${count(unanswered - inVain)}${lacking}`
  switch (ending) {
    case 'interrupted':
      return `interrupted (${left}): ${again}`
    case 'silent':
      return `the gateway did not answer many queries in a row, so payoutd stopped (${left}): see payoutd doctor; then ${again}`
    case 'all-asked':
      return `the gateway did not answer about all of them (${left}): ${again}`
  }
}
