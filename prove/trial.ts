import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Installation, startInstallation } from '../devkit/local/demo/installation.ts'
import { type DemoSettings, MERCHANT_ID } from '../devkit/local/demo/settings.ts'
import { check, type Discrepancy } from '../devkit/oracle/check.ts'
import { Gateway } from '../devkit/oracle/gateway-books.ts'
import { readLedgerRecords } from '../devkit/oracle/ledger-records.ts'
import { outcomesOf, payeeOf, type RequestedPayout } from '../devkit/oracle/outcome.ts'
import { untilSettled } from '../devkit/oracle/settled.ts'
import { TopicRecorder } from '../devkit/oracle/topic-recorder.ts'
import { startSandbox } from '../devkit/sandbox/sandbox.ts'
import { readConfig } from '../src/config/config.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { payoutKey } from '../src/domain/identifiers.ts'
import { paise } from '../src/domain/money.ts'
import { schemaSubjects, topicNames } from '../src/messages/topics.ts'
import { createPublisher } from '../src/platform/kafka/producer.ts'
import { createLogger } from '../src/platform/log.ts'
import { connectDatabase } from '../src/platform/postgres/postgres.ts'
import { openCodec } from '../src/platform/registry/codec.ts'
import { connectRegistry } from '../src/platform/registry/registry.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'

/** A payoutd process with its own servers: a test may kill any of them. */
export type Trial = {
  installation: Installation
  /** Publishes this many commands. */
  ask(count: number): Promise<void>
  /** Resolves once the gateway has accepted this many orders; payoutd does not know of the last of them yet. */
  taken(count: number): Promise<void>
  /** Waits until everything has ended, and returns what does not fit, with the number of payouts paid. */
  verdict(): Promise<{ discrepancies: Discrepancy[]; paid: number }>
  stop(): Promise<void>
}

/** Beginnings of account numbers: usual; never called back; called back twice; and before the answer. */
const ACCOUNTS = ['5010', '9999000002', '9999000003', '9999000004']

const NEVER = new AbortController().signal
const at = (name: string) => path.resolve(import.meta.dirname, '..', '.payoutd', name)

/**
 * Starts a payoutd that queries and gives up sooner than in production, so that a test sees how a crash's leftovers
 * end. It adds `settings`.
 */
export async function startTrial(name: string, settings: DemoSettings): Promise<Trial> {
  const log = createLogger({ name, level: 'fatal', destination: 2 })
  const merchant = { mchId: '1000100', key: randomBytes(16).toString('hex') }
  const state = path.join(await mkdtemp(path.join(tmpdir(), 'payoutd-')), 'sandbox')
  const sandbox = await startSandbox({
    state,
    merchants: [merchant],
    // So that at any moment some payouts are at the gateway without an answer yet.
    latencyMs: 150,
    callbackRetries: [1, 1, 1, 2, 2, 5],
  })
  const installation = await startInstallation({
    dir: at(name),
    fresh: true,
    ports: 'any',
    given: {
      GATEWAY_BASE_URL: sandbox.url,
      GATEWAY_MCH_ID: merchant.mchId,
      GATEWAY_KEY: merchant.key,
      GATEWAY_DIALECT: path.join(import.meta.dirname, '../test/quick-dialect.json'),
    },
    settings: { LOG_LEVEL: 'warn', ...settings },
    log,
    onStep: () => undefined,
  })
  const config = readConfig(installation.settings)
  const { commands } = topicNames(config.topicPrefix)
  const codec = await openCodec(
    connectRegistry(config.registry),
    schemaSubjects(topicNames(config.topicPrefix)),
  )
  const encode = codec.encoder(commands, 'in.payoutd.PayoutRequested')
  const publisher = createPublisher('test', config.kafka, log)
  const db = connectDatabase({ url: config.databaseUrl, connections: 1, applicationName: name })
  const gateway = new Gateway(sandbox.url, merchant.mchId)
  const asked: RequestedPayout[] = []

  return {
    installation,
    async ask(count) {
      const requests = Array.from({ length: count }, (_, i) => {
        const number = asked.length + i + 1
        const account = `${ACCOUNTS[number % ACCOUNTS.length]}${1_000_000 + number}`
        return command(`p${number}`, { amount: paise(100 * number), accountNo: account, rowNumber: number })
      })
      await publisher.publish(
        requests.map((request) => ({
          topic: commands,
          key: payoutKey(request),
          value: encode(request),
        })),
      )
      asked.push(
        ...requests.map((request) => ({ ...request, payee: payeeOf(request), row: request.rowNumber ?? 0 })),
      )
    },
    taken: (count) => eventually(`${count} orders`, async () => (await gateway.orders()).length >= count),
    async verdict() {
      // Only now: a consumer that lived through a crash of Kafka waits until Kafka gives up its former self.
      const recorder = await TopicRecorder.start(config, log)
      try {
        await untilSettled({
          asked,
          recorder,
          gateway,
          db,
          clock: systemClock,
          signal: NEVER,
          onProgress: () => undefined,
        })
        const outcomes = outcomesOf(
          asked,
          recorder.told,
          await readLedgerRecords(db, MERCHANT_ID),
          await gateway.orders(),
        )
        return {
          discrepancies: check(outcomes, await gateway.books()),
          paid: outcomes.payouts.filter(({ ends }) => ends[0]?.status === 'PAID').length,
        }
      } finally {
        await recorder.stop()
      }
    },
    async stop() {
      await publisher.close()
      await db.close()
      // This test is not about an orderly stop, which can take long right after a crash.
      await installation.payoutd.kill()
      await installation.stop()
      await sandbox.stop()
      await rm(path.dirname(state), { recursive: true })
    },
  }
}
