import { Command } from 'commander'
import { SAFEGUARDS, type Safeguards } from '../../app/safeguards.ts'
import { type Config, readConfig } from '../../config/config.ts'
import type { Merchant } from '../../config/merchants.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import { formatAge, formatTime } from '../../domain/times.ts'
import { type ConnectedAccount, connectAccounts } from '../../gateway/accounts.ts'
import { accountOf } from '../../gateway/dialect/account.ts'
import { queryPolicyOf } from '../../gateway/dialect/dialect.ts'
import { PresenceCheck } from '../../gateway/presence-check.ts'
import { fenceForLosses } from '../../ledger/evidence/proven-losses.ts'
import { intakeBacklog, type PartitionEnd } from '../../ledger/intake-backlog.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { topicNames } from '../../messages/topics.ts'
import { accountsBeside, requireInForce } from '../../operators/gateway-settings.ts'
import type { AskedAccount } from '../../operators/restore/accounts.ts'
import { recallAnomalies } from '../../operators/restore/anomalies.ts'
import { untilCaughtUp } from '../../operators/restore/catch-up.ts'
import { earlierLedger } from '../../operators/restore/earlier-ledger.ts'
import { type Lowered, lowerFence } from '../../operators/restore/nothing-lost.ts'
import { onThisServer } from '../../operators/restore/one-server.ts'
import { publishedBeyond } from '../../operators/restore/published-beyond.ts'
import { type ReadBackDeps, readBackPublished } from '../../operators/restore/read-back-published.ts'
import {
  beginAgain,
  fence,
  findFence,
  listOpen,
  lowerAfterRestore,
  queryOpen,
  untilGraceIsOver,
} from '../../operators/restore/restore.ts'
import { type BegunRecovery, merchantsBeside } from '../../operators/restore/sql/fence.ts'
import { countOpenPayouts, progress } from '../../operators/restore/sql/list.ts'
import { reportWithoutCommand } from '../../operators/restore/without-command.ts'
import { readBackPayins } from '../../payins/read-back.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { connectAdmin } from '../../platform/kafka/admin.ts'
import { readTopic } from '../../platform/kafka/read-topic.ts'
import type { TopicRecord } from '../../platform/kafka/records.ts'
import { createLogger, silentLogger } from '../../platform/log.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type Codec, isAvro } from '../../platform/registry/codec.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { askingAbout } from '../../stages/outcomes/known-order.ts'
import { accountText } from '../../views/gateway-settings-text.ts'
import { type MerchantFindings, ONLY_IN_DATABASE, recoveryText } from '../../views/recovery-text.ts'
import { Bar } from '../bar.ts'
import {
  type ActReport,
  confirmed,
  type DecisionOptions,
  reportDone,
  reportRefused,
  withDecision,
} from '../decision.ts'
import { rateOf } from '../options/rate-of.ts'
import { inLines, note } from '../print.ts'
import { withDatabase } from '../with-database.ts'
import { withLedger } from '../with-ledger.ts'

type RecoverOptions = DecisionOptions & {
  merchant?: string
  rate: number
  nothingLost?: true
  leaveOut?: string[]
}

const INTERRUPTED = 130

export const recoverCommand = withDecision(
  new Command('recover')
    .option(
      '--merchant <id>',
      'only ask about this merchant; by default about all in the settings. Unless it is fenced already, payoutd fences all others, too, because they share the ledger',
    )
    .option(
      '--nothing-lost',
      'only remove the fences that payoutd raised, without asking the gateway. You guarantee that the new server has every commit: after a planned switchover, or if it is the standby that every commit waits for',
    )
    .option('--rate <count/s>', 'the most queries per second', rateOf, 10)
    .option('--leave-out <topic/partition/offset...>', 'messages that payoutd did not write and cannot read'),
)
  .addHelpText(
    'after',
    `
After a failover: make sure that the former server is stopped, then run payoutd recover. payoutd serve can keep running,
because payoutd has already fenced every merchant.

After a restore: stop every payoutd, restore, and start payoutd recover. When it asks for it, start payoutd serve, which
reads the commands that the database lost from Kafka again. If recover is interrupted, run the same command again to continue.
payoutd also fences a merchant that is in the ledger but not in the settings. It stays fenced until you put it back into the
settings and run payoutd recover again.
The exit code is 0 if the gateway answered about every payout and sending continues, 1 if payoutd still has to ask about
something and a merchant stays fenced, and ${INTERRUPTED} if interrupted.`,
  )
  .action((options: RecoverOptions) => recoverWith(SAFEGUARDS, options))

/** Runs the command. `connectDatabase`: how it reaches the ledger. */
export async function recoverWith(
  { connectDatabase: connect }: Pick<Safeguards, 'connectDatabase'>,
  options: RecoverOptions,
): Promise<void> {
  const config = readConfig(process.env)
  const merchants = merchantsIn(config, options.merchant)
  if (options.nothingLost) return lower(merchants, options, config)
  const topic = topicNames(config.topicPrefix).commands
  const ends = await endsOf(topic, config)
  const would = await withDatabase(config, async (db) =>
    expected(merchants, await besidesOf(config, options, db), topic, ends, db),
  )
  if (!(await confirmed(would, options))) return
  const work = async (ledger: Ledger, codec: Codec) => {
    const abort = new AbortController()
    const stop = () => abort.abort()
    process.once('SIGINT', stop).once('SIGTERM', stop)
    try {
      await recover({ merchants, topic, options, config, ledger, codec, signal: abort.signal })
    } catch (error) {
      if (error !== abort.signal.reason) throw error
      reportInterrupted()
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop)
    }
  }
  await withLedger(config, work, connect)
}

async function lower(merchants: readonly Merchant[], options: RecoverOptions, config: Config): Promise<void> {
  const names = merchants.map(({ merchantId }) => merchantId)
  const text = `payoutd would remove the fences that it raised, without asking the gateway: ${names.join(', ')}`
  if (!(await confirmed({ text, json: { merchants: names } }, options))) return
  const lowered: Lowered[] = []
  await withLedger(config, async (anywhere, codec) => {
    const ledger = await onThisServer(anywhere)
    note('reading published messages and comparing them with the ledger')
    const lacking = await publishedBeyond(published(ledger, codec, config, options))
    const said = { ...options, isNamed: options.merchant !== undefined, lacking }
    for (const merchantId of names) lowered.push(await lowerFence(merchantId, said, ledger))
  })
  const lines = inLines(lowered).map(({ merchantId, kept }) =>
    kept === null ? `${merchantId}: sending continues` : `${merchantId}: nothing was done, ${kept}`,
  )
  const report: ActReport = { text: lines.join('\n'), json: { merchants: lowered } }
  if (lowered.every(({ kept }) => kept === null)) reportDone(report, options)
  else reportRefused(report, options)
}

type Recovery = {
  merchants: readonly Merchant[]
  topic: string
  options: RecoverOptions
  config: Config
  ledger: Ledger
  codec: Codec
  signal: AbortSignal
}

async function recover({ ledger: anywhere, ...recovery }: Recovery) {
  const { merchants, topic, options, config, codec, signal } = recovery
  const ledger = await onThisServer(anywhere)
  const { db } = ledger
  await fenceForLosses({ ledger, log: silentLogger, merchantIds: [...config.merchants.keys()] })
  const { by, reason } = options
  const { others, away } = await besidesOf(config, options, db)
  const earlier = earlierLedger(config.kafka, ledger.topics)
  for (const merchant of merchants)
    await requireInForce(db, { ...merchant, account: accountOf(merchant) }, earlier, {
      ...{ by, reason, command: 'recover' },
    })
  const all = [...merchants.map(fencing), ...[...others, ...away].map(onlyFenced)]
  await fence(db, all, { by, reason, leftOut: options.leaveOut ?? [] })
  note(`${merchants.map(({ merchantId }) => merchantId).join(', ')}: fenced; payoutd sends nothing for now`)
  const besides = besidesText({ others, away })
  for (const line of besides) note(line)
  note(ONLY_IN_DATABASE)
  const waiting = { topic, ledger, signal }
  const ends = await endsOf(topic, config)
  if (!(await takenIn(ends, waiting))) return reportInterrupted()
  const raised = await beginAgain(db, all)
  const fences = raised.filter(({ merchantId }) => merchants.some((each) => each.merchantId === merchantId))
  // Read the messages of merchants outside the settings now, too: when they return, Kafka may no longer have them.
  for (const each of raised) await listOpen(db, each)
  const names = raised.map(({ merchantId }) => merchantId)
  const topics = published(ledger, codec, config, options, signal)
  const recalled = await readBackPublished(names, topics)
  if (recalled > 0)
    note(`payoutd put back what the ledger had lost about ${recalled} payouts, from published messages`)
  const payins = await readBackPayins(names, topics)
  if (payins > 0) note(`payoutd compared ${payins} payins with a published end that the ledger had lost`)
  const anomalies = await recallAnomalies(names, topics)
  if (anomalies > 0)
    note(`the ledger had lost ${anomalies} published anomalies: payoutd anomaly list shows them again`)
  const settingsOf = ({ merchantId }: BegunRecovery) =>
    merchants.find((merchant) => merchant.merchantId === merchantId) as Merchant
  const isUnused = ends.every(({ high }) => high === 0n)
  for (const each of fences) {
    const { merchantId } = each
    if (isUnused && (await db.run(progress, { merchantId }))[0]?.listed === 0) continue
    const onWait = (leftMs: number) => note(waitText(merchantId, leftMs))
    await untilGraceIsOver(each, graceOf(settingsOf(each)), { db, clock: systemClock, signal, onWait })
  }
  // Kafka now has what the former server's process stored while it was being stopped.
  if (!(await takenIn(await endsOf(topic, config), waiting))) return reportInterrupted()
  for (const each of fences) await listOpen(db, each)
  const gone: { merchantId: string; count: number }[] = []
  for (const { merchantId } of fences) {
    const count = await reportWithoutCommand(merchantId, ledger)
    if (count > 0) gone.push({ merchantId, count })
  }
  const findings: MerchantFindings[] = []
  const errors: unknown[] = []
  for (const each of fences) {
    if (signal.aborted) break
    try {
      findings.push(await recoverOne(each, settingsOf(each), { options, ledger, signal }))
    } catch (error) {
      errors.push(error)
      const { merchantId } = each
      findings.push({ merchantId, kind: 'open', ending: 'failed', findings: [] })
    }
  }
  const lines = [...inLines(findings).map(recoveryText), ...inLines(gone).map(goneText), ...besides]
  const report: ActReport = { text: lines.join('\n'), json: { merchants: findings, gone, others, away } }
  if (signal.aborted) reportInterrupted()
  else if (findings.every(({ kind }) => kind === 'recovered')) reportDone(report, options)
  else reportRefused(report, options)
  // Last, because the operator has to act on it.
  if (errors.length > 0) throw errors[0]
}

const MOST_NAMED = 10

/** Until Kafka answers, the log says why it does not. Names and leaves out what is no message of payoutd by its first bytes. */
function published(
  ledger: Ledger,
  codec: Codec,
  { kafka }: Config,
  { leaveOut = [] }: RecoverOptions,
  signal?: AbortSignal,
): ReadBackDeps {
  const log = createLogger({ name: 'payoutd', level: 'warn', destination: 2 })
  return {
    ...{ ledger, codec },
    async readTopic(topic, onRecord) {
      let left = 0
      const passOn = async (record: TopicRecord) => {
        const { partition, offset, value } = record
        const place = `${topic}/${partition}/${offset}`
        if (!leaveOut.includes(place) && (value === null || isAvro(value))) return onRecord(record)
        if (++left <= MOST_NAMED) note(`${place}: left out, because payoutd did not write it`)
      }
      await readTopic({ connection: kafka, topic, onRecord: passOn, signal, log })
      if (left > MOST_NAMED) note(`${topic}: ${left} messages left out in all`)
    },
  }
}

/** Waits until the ledger has all commands up to these end offsets. False: it was interrupted. */
async function takenIn(
  ends: readonly PartitionEnd[],
  { topic, ledger: { db }, signal }: Pick<Recovery, 'topic' | 'ledger' | 'signal'>,
): Promise<boolean> {
  const caughtUp = await untilCaughtUp(topic, ends, {
    db,
    clock: systemClock,
    signal,
    onBehind: (behind) => note(`payoutd serve has to read ${behind} messages again: start it now`),
  })
  if (caughtUp.kind === 'stuck') {
    throw new ExpectedFailure(
      `payoutd serve read nothing for a minute, and ${caughtUp.behind} messages are left: the merchants stay fenced; ` +
        'start payoutd serve (if it runs, payoutd doctor shows what holds commands up), then run this command again to continue',
    )
  }
  return caughtUp.kind === 'caught-up'
}

/** For how long after its send an order may not be found yet, at any account, including the lease of the claim. */
const graceOf = (merchant: Merchant): number =>
  Math.max(
    ...[merchant, ...merchant.formerAccounts].map(
      ({ dialect }) => queryPolicyOf(dialect).graceMs + dialect.leaseMs,
    ),
  )

function reportInterrupted(): void {
  process.exitCode = INTERRUPTED
  note(
    'interrupted: merchants with payouts not yet queried stay fenced; run the same command again to continue',
  )
}

async function recoverOne(
  raised: BegunRecovery,
  merchant: Merchant,
  { options, ledger, signal }: Pick<Recovery, 'options' | 'ledger' | 'signal'>,
): Promise<MerchantFindings> {
  const { merchantId } = merchant
  const connected = connectAccounts(merchant, { applies: 0, clock: systemClock })
  const presenceCheck = new PresenceCheck(systemClock)
  const asked = ({ accountId, settingsHash, queryPolicy, client }: ConnectedAccount): AskedAccount => {
    const query = (mchOrderNo: string) => client.query({ mchOrderNo })
    const asking = askingAbout({ merchantId, accountId }, query, ledger.db)
    return {
      accountId,
      settingsHash,
      queryPolicy,
      query,
      presenceCheck: {
        found: (mchOrderNo) => presenceCheck.found(settingsHash, mchOrderNo),
        holds: () => presenceCheck.holds(settingsHash, asking),
      },
    }
  }
  const [current, ...former] = connected
  const missing = await missingAccounts(merchant, ledger.db)
  const isDrawn = process.stderr.isTTY && !options.json
  const bar = new Bar(isDrawn)
  const say = isDrawn ? () => undefined : everyTenSeconds()
  let isSilent = false
  try {
    const ending = await queryOpen(raised, {
      ledger,
      decisions: DECISIONS,
      accounts: [asked(current), ...former.map(asked)],
      missing,
      ratePerSecond: options.rate,
      who: options,
      clock: systemClock,
      signal,
      onSilent() {
        isSilent = true
      },
      onProgress(asked, listed) {
        bar.show(asked, listed)
        say(`${merchantId}: the gateway has answered about ${asked} of ${listed} payouts`)
      },
    })
    return { merchantId, ending, isSilent, ...(await lowerAfterRestore(raised, options, ledger)) }
  } finally {
    bar.end()
    await Promise.all(connected.map(({ client }) => client.close()))
  }
}

function everyTenSeconds(): (text: string) => void {
  let saidAt = -Infinity
  return (text) => {
    const now = systemClock.monotonic()
    if (now - saidAt < 10_000) return
    saidAt = now
    note(text)
  }
}

const waitText = (merchantId: string, leftMs: number): string =>
  `${merchantId}: waits until ${formatTime(systemClock.now() + leftMs)} (${formatAge(leftMs)}) before it asks the gateway: ` +
  "the dialect's grace and a lease must pass before the gateway finds what was sent last"

/** `others`: in the settings; `away`: in the ledger, but not in the settings. */
type OnlyFenced = { others: string[]; away: string[] }

/**
 * The merchants that the command fences without asking about them. Whoever recovers one merchant because of a loss that payoutd
 * has not seen says that the ledger was set back, and it is everybody's; a merchant that is fenced already may be so for
 * reasons of its own.
 */
async function besidesOf(
  { merchants }: Config,
  { merchant }: Pick<RecoverOptions, 'merchant'>,
  db: Database,
): Promise<OnlyFenced> {
  if (merchant !== undefined && (await findFence(db, merchant)) !== null) return { others: [], away: [] }
  const known = [...merchants.keys()]
  const away = (await db.run(merchantsBeside, { merchantIds: known })).map(({ merchantId }) => merchantId)
  return { others: merchant === undefined ? [] : known.filter((each) => each !== merchant), away }
}

const fencing = (merchant: Merchant) => ({
  merchantId: merchant.merchantId,
  feeEstimate: merchant.feeEstimate,
  settings: accountsOf(merchant).map(({ settingsHash }) => settingsHash),
})

const accountsOf = (merchant: Merchant) => [merchant, ...merchant.formerAccounts].map(accountOf)

const onlyFenced = (merchantId: string) => ({ merchantId, feeEstimate: 0n })

const goneText = ({ merchantId, count }: { merchantId: string; count: number }): string =>
  `${merchantId}: ${count} payouts were published as not ended, and the ledger lacks them. payoutd did not query them: see payoutd anomaly list`

const besidesText = ({ others, away }: OnlyFenced): string[] => [
  ...(others.length > 0
    ? [
        `${inLines(others).join(', ')}: also fenced, because they share the ledger: run payoutd recover for them, too`,
      ]
    : []),
  ...(away.length > 0
    ? [
        `${inLines(away).join(', ')}: also fenced, but not in the settings, so payoutd cannot query them: put them back into the settings and run payoutd recover again`,
      ]
    : []),
]

/** The accounts of the merchant that its settings lack, by id, in words. */
async function missingAccounts(merchant: Merchant, db: Database): Promise<Map<string, string>> {
  const known = accountsOf(merchant).map(({ accountId }) => accountId)
  const beside = await accountsBeside(db, merchant.merchantId, known)
  return new Map(beside.map((account) => [account.accountId, accountText(account)]))
}

async function expected(
  merchants: readonly Merchant[],
  { others, away }: OnlyFenced,
  topic: string,
  ends: readonly PartitionEnd[],
  db: Database,
): Promise<ActReport> {
  const open: { merchantId: string; open: number; fenced: boolean; missing: string[] }[] = []
  for (const merchant of merchants) {
    const { merchantId } = merchant
    const [counted] = await db.run(countOpenPayouts, { merchantId })
    const fenced = (await findFence(db, merchantId)) !== null
    const missing = [...(await missingAccounts(merchant, db)).values()]
    open.push({ merchantId, open: counted?.count ?? 0, fenced, missing })
  }
  const behind = await intakeBacklog(topic, ends, db)
  const each = open.flatMap(({ merchantId, open, fenced, missing }) => [
    fenced
      ? `${merchantId} is already fenced; payoutd would continue to ask the gateway about its open payouts, now ${open}`
      : `payoutd would fence ${merchantId} and ask the gateway about its open payouts, now ${open}`,
    ...missing.map(
      (account) =>
        `its settings lack ${account}, so payoutd cannot query it, and what may have been sent there would wait for a person: add it to formerAccounts first`,
    ),
  ])
  const besides = [
    ...others.map(
      (merchantId) =>
        `${inLines(merchantId)} shares the ledger: payoutd would fence it until you run payoutd recover for it, too`,
    ),
    ...away.map(
      (merchantId) =>
        `${inLines(merchantId)} is not in the settings: payoutd would fence it until you put it back and run payoutd recover again`,
    ),
  ]
  return {
    text: [
      ...each,
      ...besides,
      `payoutd serve would first have to read ${behind} commands again`,
      'every process that sends with a former database server must already be stopped',
    ].join('; '),
    json: { merchants: open, others, away, behind },
  }
}

function merchantsIn({ merchants }: Config, given: string | undefined): Merchant[] {
  if (given === undefined) return [...merchants.values()]
  const merchant = merchants.get(given)
  if (merchant) return [merchant]
  throw new ExpectedFailure(
    `there is no merchant ${given}; the settings have ${[...merchants.keys()].join(', ')}`,
  )
}

async function endsOf(topic: string, { kafka }: Config): Promise<PartitionEnd[]> {
  const admin = await connectAdmin(kafka, silentLogger)
  try {
    return await admin.logs(topic)
  } finally {
    await admin.close()
  }
}
