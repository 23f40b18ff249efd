import type { Config } from '../../../config/config.ts'
import type { Merchant } from '../../../config/merchants.ts'
import { DECISIONS } from '../../../domain/decisions.ts'
import { formatAge, formatTime } from '../../../domain/times.ts'
import { connectAccounts } from '../../../gateway/accounts.ts'
import { withAccount } from '../../../gateway/dialect/account.ts'
import { queryPolicyOf } from '../../../gateway/dialect/dialect.ts'
import { fenceForLosses } from '../../../ledger/evidence/proven-losses.ts'
import type { PartitionEnd } from '../../../ledger/intake-backlog.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { mixedAnswers } from '../../../ledger/mixed-answers.ts'
import { demandStartable, requireInForce } from '../../../operators/gateway-settings.ts'
import { recallAnomalies } from '../../../operators/recovery/anomalies.ts'
import { untilCaughtUp } from '../../../operators/recovery/catch-up.ts'
import { earlierLedger } from '../../../operators/recovery/earlier-ledger.ts'
import { onThisServer } from '../../../operators/recovery/one-server.ts'
import { readBackPublished } from '../../../operators/recovery/read-back-published.ts'
import {
  beginAgain,
  fence,
  listOpen,
  lowerAfterRecovery,
  queryOpen,
  untilGraceIsOver,
} from '../../../operators/recovery/recovery.ts'
import type { BegunRecovery } from '../../../operators/recovery/sql/fence.ts'
import { progress } from '../../../operators/recovery/sql/list.ts'
import { reportWithoutCommand } from '../../../operators/recovery/without-command.ts'
import { readBackPayins } from '../../../payins/read-back.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import { silentLogger } from '../../../platform/log.ts'
import type { Codec } from '../../../platform/registry/codec.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import { type MerchantFindings, ONLY_IN_DATABASE, recoveryText } from '../../../views/recovery-text.ts'
import { Bar } from '../../bar.ts'
import { type ActReport, reportDone, reportRefused } from '../../decision.ts'
import { inLines, note } from '../../print.ts'
import { fencing, missingAccounts } from './accounts.ts'
import { askedAccounts } from './asked-accounts.ts'
import { besidesOf, besidesText, onlyFenced } from './besides.ts'
import { endsOf, published } from './kafka.ts'
import type { RecoverOptions } from './options.ts'

export type Recovery = {
  merchants: readonly Merchant[]
  topic: string
  options: RecoverOptions
  config: Config
  ledger: Ledger
  codec: Codec
  signal: AbortSignal
}

/** Recovers merchants, step by step, and reports. */
export async function recover({ ledger: anywhere, ...recovery }: Recovery) {
  const { merchants, topic, options, config, codec, signal } = recovery
  const ledger = await onThisServer(anywhere)
  const { db } = ledger
  await fenceForLosses({ ledger, log: silentLogger, merchantIds: [...config.merchants.keys()] })
  const { by, reason } = options
  const { others, away } = await besidesOf(config, options, db)
  const earlier = earlierLedger(config.kafka, ledger.topics)
  const act = { by, reason, command: 'recover' }
  const configured = merchants.map(withAccount)
  const inSettings = [...config.merchants.values()].map(withAccount)
  await demandStartable(db, configured, { all: inSettings, command: act.command })
  for (const each of configured) await requireInForce(db, each, earlier, act)
  const all = [...merchants.map(fencing), ...[...others, ...away].map(onlyFenced)]
  await fence(db, all, { by, reason, leftOut: options.leaveOut ?? [] })
  note(`${merchants.map(({ merchantId }) => merchantId).join(', ')}: fenced; payoutd sends nothing for now`)
  const besides = besidesText({ others, away })
  for (const line of besides) note(line)
  note(ONLY_IN_DATABASE)
  const waiting = { merchants, topic, ledger, signal }
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

const goneText = ({ merchantId, count }: { merchantId: string; count: number }): string =>
  `${merchantId}: ${count} payouts were published as not ended, and the ledger lacks them. payoutd did not query them: see payoutd anomaly list`

export const INTERRUPTED = 130

/** Waits until the ledger has all commands up to these end offsets. False: it was interrupted. */
async function takenIn(
  ends: readonly PartitionEnd[],
  { merchants, topic, ledger: { db }, signal }: Pick<Recovery, 'merchants' | 'topic' | 'ledger' | 'signal'>,
): Promise<boolean> {
  let isFirst = true
  const merchantIds = merchants.map(({ merchantId }) => merchantId)
  const caughtUp = await untilCaughtUp(
    { topic, ends, merchantIds },
    {
      db,
      clock: systemClock,
      signal,
      onBehind(behind) {
        note(
          `payoutd serve has to read ${behind} messages again${isFirst ? ': start it now, unless it runs' : ''}`,
        )
        isFirst = false
      },
    },
  )
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

export function reportInterrupted(): void {
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
  const connected = connectAccounts(merchant, {
    applies: 0,
    clock: systemClock,
    mixedUp: mixedAnswers(merchantId, ledger.db, silentLogger),
  })
  const missing = await missingAccounts(merchant, ledger.db)
  const isDrawn = process.stderr.isTTY && !options.json
  const bar = new Bar(isDrawn)
  const say = isDrawn ? () => undefined : everyTenSeconds()
  const silent = new Set<string>()
  try {
    const ending = await queryOpen(raised, {
      ledger,
      decisions: DECISIONS,
      accounts: askedAccounts(merchantId, connected, { db: ledger.db, clock: systemClock }),
      missing,
      ratePerSecond: options.rate,
      who: options,
      clock: systemClock,
      signal,
      silent,
      onProgress(asked, listed) {
        bar.show(asked, listed)
        say(`${merchantId}: the gateway has answered about ${asked} of ${listed} payouts`)
      },
    })
    const outcome = await lowerAfterRecovery(raised, options, ledger)
    return { merchantId, ending, isSilent: silent.size > 0, ...outcome }
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
