import { Command } from 'commander'
import { type Config, readConfig } from '../config/config.ts'
import type { Merchant } from '../config/merchants.ts'
import { accountOf } from '../gateway/account.ts'
import { type ConnectedAccount, connectAccounts } from '../gateway/accounts.ts'
import { PositiveControl } from '../gateway/positive-control.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Fence } from '../ledger/sql/fence.ts'
import { topicNames } from '../ledger/topics.ts'
import { earlierLedger } from '../operations/earlier-ledger.ts'
import { requireInForce } from '../operations/gateway-settings.ts'
import { type MerchantFindings, recoveryText } from '../operations/recovery-text.ts'
import { JUDGEMENT } from '../payout/judgement.ts'
import { systemClock } from '../platform/clock.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { connectAdmin } from '../platform/kafka/admin.ts'
import type { Codec } from '../platform/kafka/codec.ts'
import { readTopic } from '../platform/kafka/read-topic.ts'
import { silentLogger } from '../platform/log.ts'
import type { Database } from '../platform/postgres.ts'
import { howFarBehind, type PartitionEnd, untilCaughtUp } from '../recovery/catch-up.ts'
import { recallPublished } from '../recovery/lost.ts'
import { type Lowered, lowerFence } from '../recovery/nothing-lost.ts'
import {
  type AskedAccount,
  askAboutOpen,
  fence,
  findFence,
  listOpen,
  takeDown,
} from '../recovery/recovery.ts'
import { countOpenPayouts } from '../recovery/sql/list.ts'
import { askingAbout } from '../settlement/control.ts'
import { Bar } from './bar.ts'
import {
  consented,
  type DecisionOptions,
  type Told,
  tellDone,
  tellRefused,
  withDecision,
} from './decision.ts'
import { inLines, note } from './print.ts'
import { rateOf } from './rate-of.ts'
import { withDatabase } from './with-database.ts'
import { withLedger } from './with-ledger.ts'

type Options = DecisionOptions & { merchant?: string; rate: number; nothingLost?: true }

const INTERRUPTED = 130

export const recoverCommand = withDecision(
  new Command('recover')
    .description(
      'after a failover or a restore of the database: send nothing until the gateway was asked about every payout that has not ended',
    )
    .option('--merchant <id>', 'only this one; otherwise every merchant in the settings')
    .option(
      '--nothing-lost',
      'only take down the fences that payoutd raised: you vouch that the server which took over has every commit, as a synchronous standby does',
    )
    .option('--rate <count/s>', 'at most so many questions a second', rateOf, 10),
)
  .addHelpText(
    'after',
    `
After a failover: make sure that the former server is stopped; payoutd serve may go on running, as payoutd itself has fenced
every merchant. Run payoutd recover.

After a restore, the order: stop every payoutd, restore, start payoutd recover, and when it says so payoutd serve, which takes the commands
in again that the database lost. Interrupted, the same command goes on.
The exit code is 0 when every payout was told of and sending goes on, 1 while something is still to be asked and the
merchant stays fenced, ${INTERRUPTED} when interrupted.`,
  )
  .action(async (options: Options) => {
    const config = readConfig(process.env)
    const merchants = merchantsIn(config, options.merchant)
    if (options.nothingLost) return lower(merchants, options, config)
    const topic = topicNames(config.topicPrefix).commands
    const ends = await endsOf(topic, config)
    const would = await withDatabase(config, (db) => expected(merchants, topic, ends, db))
    if (!(await consented(would, options))) return
    await withLedger(config, async (ledger, codec) => {
      const abort = new AbortController()
      const stop = () => abort.abort()
      process.once('SIGINT', stop).once('SIGTERM', stop)
      try {
        await recover({ merchants, topic, ends, options, config, ledger, codec, signal: abort.signal })
      } finally {
        process.off('SIGINT', stop).off('SIGTERM', stop)
      }
    })
  })

async function lower(merchants: readonly Merchant[], options: Options, config: Config): Promise<void> {
  const names = merchants.map(({ merchantId }) => merchantId)
  const text = `the fences that payoutd raised would be taken down, without asking the gateway: ${names.join(', ')}`
  if (!(await consented({ text, json: { merchants: names } }, options))) return
  const lowered: Lowered[] = []
  await withLedger(config, async (ledger) => {
    for (const merchantId of names) lowered.push(await lowerFence(merchantId, options, ledger))
  })
  const lines = inLines(lowered).map(({ merchantId, kept }) =>
    kept === null ? `${merchantId}: sending goes on` : `${merchantId}: nothing was done, ${kept}`,
  )
  const told: Told = { text: lines.join('\n'), json: { merchants: lowered } }
  if (lowered.every(({ kept }) => kept === null)) tellDone(told, options)
  else tellRefused(told, options)
}

type Recovery = {
  merchants: readonly Merchant[]
  topic: string
  ends: readonly PartitionEnd[]
  options: Options
  config: Config
  ledger: Ledger
  codec: Codec
  signal: AbortSignal
}

async function recover({ merchants, topic, ends, options, config, ledger, codec, signal }: Recovery) {
  const { db } = ledger
  const { by, reason } = options
  const earlier = earlierLedger(config.kafka, ledger.topics)
  for (const merchant of merchants)
    await requireInForce(db, { ...merchant, account: accountOf(merchant) }, earlier)
  const fences = await fence(db, merchants, { by, reason })
  note(`${fences.map(({ merchantId }) => merchantId).join(', ')}: fenced, so that nothing is sent`)
  const caughtUp = await untilCaughtUp(topic, ends, {
    db,
    clock: systemClock,
    signal,
    onBehind: (behind) =>
      note(`${behind} messages are to be taken in again: payoutd serve does it, start it now`),
  })
  if (caughtUp.kind === 'stuck') {
    throw new ExpectedFailure(
      `nothing was taken in for a minute, and ${caughtUp.behind} messages are left: the merchants stay fenced; ` +
        'start payoutd serve, and then this command again, which goes on',
    )
  }
  if (caughtUp.kind === 'interrupted') return tellInterrupted()
  for (const raised of fences) await listOpen(db, raised)
  const recalled = await recallPublished(
    fences.map(({ merchantId }) => merchantId),
    {
      ledger,
      codec,
      readTopic: (topic, onRecord) =>
        readTopic({ connection: config.kafka, topic, onRecord, log: silentLogger }),
    },
  )
  if (recalled > 0) note(`${recalled} payouts have got back what was published about them and then lost`)
  const findings: MerchantFindings[] = []
  for (const raised of fences) {
    if (signal.aborted) break
    const merchant = merchants.find(({ merchantId }) => merchantId === raised.merchantId) as Merchant
    findings.push(await recoverOne(raised, merchant, { options, ledger, signal }))
  }
  const told: Told = { text: inLines(findings).map(recoveryText).join('\n'), json: { merchants: findings } }
  if (signal.aborted) tellInterrupted()
  else if (findings.every(({ kind }) => kind === 'recovered')) tellDone(told, options)
  else tellRefused(told, options)
}

function tellInterrupted(): void {
  process.exitCode = INTERRUPTED
  note('interrupted: what was not asked about stays fenced, and the same command goes on')
}

async function recoverOne(
  raised: Fence,
  merchant: Merchant,
  { options, ledger, signal }: Pick<Recovery, 'options' | 'ledger' | 'signal'>,
): Promise<MerchantFindings> {
  const { merchantId } = merchant
  const connected = connectAccounts(merchant, { applies: 0, clock: systemClock })
  const control = new PositiveControl(systemClock)
  const asked = ({ accountId, settingsHash, table, client }: ConnectedAccount): AskedAccount => {
    const query = (mchOrderNo: string) => client.query({ mchOrderNo })
    const asking = askingAbout({ merchantId, accountId }, query, ledger.db)
    return {
      accountId,
      table,
      query,
      control: {
        found: (mchOrderNo) => control.found(settingsHash, mchOrderNo),
        holds: () => control.holds(settingsHash, asking),
      },
    }
  }
  const [current, ...former] = connected
  const bar = new Bar(process.stderr.isTTY && !options.json)
  try {
    const ending = await askAboutOpen(raised, {
      ledger,
      judge: JUDGEMENT,
      accounts: [asked(current), ...former.map(asked)],
      ratePerSecond: options.rate,
      clock: systemClock,
      signal,
      onProgress: (asked, listed) => bar.show(asked, listed),
    })
    return { merchantId, ending, ...(await takeDown(raised, ledger)) }
  } finally {
    bar.end()
    await Promise.all(connected.map(({ client }) => client.close()))
  }
}

async function expected(
  merchants: readonly Merchant[],
  topic: string,
  ends: readonly PartitionEnd[],
  db: Database,
): Promise<Told> {
  const open: { merchantId: string; open: number; fenced: boolean }[] = []
  for (const { merchantId } of merchants) {
    const [counted] = await db.run(countOpenPayouts, { merchantId })
    const fenced = (await findFence(db, merchantId)) !== null
    open.push({ merchantId, open: counted?.count ?? 0, fenced })
  }
  const behind = await howFarBehind(topic, ends, db)
  const each = open.map(({ merchantId, open, fenced }) =>
    fenced
      ? `${merchantId} is fenced already, and the asking would go on about its open payouts, ${open} by now`
      : `${merchantId} would be fenced, and the gateway asked about its open payouts, ${open} by now`,
  )
  return {
    text: [...each, `${behind} messages of commands would first have to be taken in`].join('; '),
    json: { merchants: open, behind },
  }
}

function merchantsIn({ merchants }: Config, given: string | undefined): Merchant[] {
  if (given === undefined) return [...merchants.values()]
  const merchant = merchants.get(given)
  if (merchant) return [merchant]
  throw new ExpectedFailure(
    `no merchant is called ${given}: the settings have ${[...merchants.keys()].join(', ')}`,
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
