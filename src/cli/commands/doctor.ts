import { Command } from 'commander'
import { type Config, readConfig } from '../../config/config.ts'
import type { Merchant } from '../../config/merchants.ts'
import { accountChecks } from '../../doctor/accounts.ts'
import { anomalyChecks } from '../../doctor/anomalies.ts'
import { callbackChecks } from '../../doctor/callback.ts'
import { type Check, type CheckResult, examine } from '../../doctor/examine.ts'
import { gatewayChecks } from '../../doctor/gateway.ts'
import { commandChecks } from '../../doctor/kafka/commands.ts'
import { deadLetterChecks } from '../../doctor/kafka/dead-letters.ts'
import { kafkaChecks } from '../../doctor/kafka/kafka.ts'
import { refusedMessageChecks } from '../../doctor/kafka/refused-messages.ts'
import { registryChecks } from '../../doctor/kafka/registry.ts'
import { keptCallbackChecks } from '../../doctor/kept-callbacks.ts'
import { keyChecks } from '../../doctor/keys.ts'
import { databaseChecks } from '../../doctor/postgres/database.ts'
import { failoverChecks } from '../../doctor/postgres/failover.ts'
import { snapshotChecks } from '../../doctor/postgres/snapshots.ts'
import { stoppedSendingChecks } from '../../doctor/stopped-sending.ts'
import { createGatewayClient } from '../../gateway/client.ts'
import { accountIdsOf, accountOf, withAccount } from '../../gateway/dialect/account.ts'
import { schemaSubjects, topicNames, topicSpecs } from '../../messages/topics.ts'
import { type Addresses, addressesOf } from '../../platform/dependency-fault.ts'
import { connectAdmin } from '../../platform/kafka/admin.ts'
import { silentLogger } from '../../platform/log.ts'
import { connectDatabase, type Database } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { callbackPath } from '../../stages/outcomes/callback-endpoint.ts'
import { newestOrders } from '../../stages/outcomes/sql/known-orders.ts'
import { allTaken, inLines, note, print } from '../print.ts'
import { lettersOf } from './dlq.ts'

/** Longer than KafkaJS needs to give up on a broker that refuses, shorter than a person is willing to wait. */
const LIMIT_MS = 15_000
/** With more checks, as many merchants make, the good ones are only counted. */
const MOST_LINES = 60

export const doctorCommand = new Command('doctor')
  .option('--json', 'print the findings as JSON')
  .action(async ({ json }: { json?: true }) => {
    const config = readConfig(process.env)
    const addresses = addressesOf(config)
    const checks = checksFor(config, addresses)
    const width = Math.max(...checks.map(({ name }) => name.length))
    const printLine = json ? note : print
    const found = await examine(checks, {
      addresses,
      limitMs: LIMIT_MS,
      clock: systemClock,
      onFound: (one, left) => {
        clearStatus()
        if (checks.length <= MOST_LINES || one.finding.state !== 'good') printLine(line(inLines(one), width))
        showStatus(left)
      },
    })
    const healthy = found.every(({ finding }) => finding.state === 'good' || finding.state === 'warning')
    if (json) print(JSON.stringify({ healthy, checks: found.map(flat) }, null, 2))
    else print(`\n${summary(found)}`)
    await allTaken()
    // A connection that still hangs after its check ran out of time would keep the process alive.
    process.exit(healthy ? 0 : 1)
  })

function checksFor(config: Config, addresses: Addresses): Check[] {
  const topics = topicNames(config.topicPrefix)
  const merchants = [...config.merchants.values()]
  const { host, port } = config.publicAt
  const publicUrl = config.publicUrl ?? `http://${host}:${port}`
  const db = connectDatabase({ url: config.databaseUrl, connections: 4, applicationName: 'payoutd doctor' })
  const connect = () => connectAdmin(config.kafka, silentLogger)
  return [
    ...databaseChecks(db, addresses.database, systemClock),
    ...failoverChecks(db),
    ...snapshotChecks(db),
    ...keyChecks(db, { sealing: config.sealing, fingerprint: config.fingerprintKey }),
    ...kafkaChecks({
      connect,
      address: addresses.kafka,
      specs: topicSpecs(topics, config.topics),
      commands: topics.commands,
      db,
      topicPrefix: config.topicPrefix,
    }),
    ...commandChecks(db, { connect, topic: topics.commands }),
    ...registryChecks(config.registry, schemaSubjects(topics), addresses.registry, db),
    ...gatewayChecks(
      merchants.map((merchant) => gateway(merchant, db)),
      systemClock,
    ),
    ...callbackChecks(
      merchants.map(({ merchantId, baseUrl }) => ({
        merchantId,
        url: publicUrl + callbackPath('payout', merchantId),
        gatewayUrl: baseUrl,
        configured: config.publicUrl !== null,
      })),
    ),
    ...stoppedSendingChecks(db),
    ...accountChecks(db, accountIdsOf(config.merchants), merchants.map(withAccount)),
    ...keptCallbackChecks(db, config.merchants),
    ...anomalyChecks(db),
    ...refusedMessageChecks(db),
    ...deadLetterChecks({ connect, topic: topics.deadLetters, unreplayed: () => unreplayedIn(config, db) }),
  ]
}

async function unreplayedIn(config: Config, db: Database): Promise<number> {
  const letters = await lettersOf(config, db, silentLogger)
  return letters.filter(({ replayed }) => !replayed).length
}

function gateway(merchant: Merchant, db: Database) {
  const { merchantId, baseUrl, mchId, key, dialect, tls } = merchant
  const client = createGatewayClient({
    baseUrl,
    mchId,
    key,
    dialect,
    tls,
    clock: systemClock,
    connections: 1,
  })
  const { accountId } = accountOf(merchant)
  return {
    merchantId,
    baseUrl,
    balance: () => client.balance(),
    knownOrders: async () =>
      (await db.run(newestOrders, { merchantId, accountId })).map(({ orderNo }) => orderNo),
    query: (mchOrderNo: string) => client.query({ mchOrderNo }),
  }
}

const MARKS = { good: '✔', wrong: '✘', warning: '!', unchecked: '–' } as const

function line({ name, finding }: CheckResult, width: number): string {
  const text = `${MARKS[finding.state]} ${name.padEnd(width)}  ${finding.what}`
  return 'todo' in finding ? `${text}\n  ${' '.repeat(width)}  → ${finding.todo}` : text
}

const flat = ({ name, finding, tookMs }: CheckResult) => ({ name, ...finding, tookMs })

function summary(found: readonly CheckResult[]): string {
  const count = (state: string) => found.filter(({ finding }) => finding.state === state).length
  const [wrong, warning, unchecked] = [count('wrong'), count('warning'), count('unchecked')]
  if (wrong === 0 && unchecked > 0)
    return `${unchecked} of ${found.length} checks could not run, so nobody knows whether everything works`
  if (wrong === 0 && warning === 0) return `all ${found.length} checks are good`
  if (wrong === 0)
    return `everything works, but ${warning} of ${found.length} checks ${warning === 1 ? 'warns' : 'warn'}: follow the advice above`
  return `${wrong} of ${found.length} checks failed${unchecked > 0 ? `, ${unchecked} could not run` : ''}`
}

/** On a terminal: shows the checks still under way, in a line that the next finding replaces. */
function showStatus(left: readonly string[]): void {
  if (process.stderr.isTTY && left.length > 0) process.stderr.write(`… ${left.join(', ')}`.slice(0, 100))
}

function clearStatus(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
}
