import { schemaSubjects } from '../messages/topics.ts'
import { consumeBatches } from '../platform/kafka/consumer.ts'
import { signing, sql } from '../platform/postgres/postgres.ts'
import { Rounds } from '../platform/postgres/rounds.ts'
import { connectRegistry, RegistryAway, type SchemaSubject } from '../platform/registry/registry.ts'
import { Intake } from '../stages/intake/intake.ts'
import { startingOffset } from '../stages/intake/starting-offset.ts'
import { processWaiting, type WaitingDeps } from '../stages/intake/waiting-commands.ts'
import { keysOf, type Shared } from './shared.ts'

/** A row, unless this server or session is for reading only. `large`: some networks lose large packets alone. */
const takesWrites = sql<{ large: string }, { able: number }>`
  select length(${'large'}) as able where current_setting('transaction_read_only') = 'off'`
const LARGE = 'x'.repeat(16_000)

export function startIntake({ config, ledger, codec, metrics, lifecycle, log }: Shared): void {
  const deps = {
    ledger,
    terms: config.merchants,
    keys: keysOf(config),
    decode: (value: Buffer | null) => codec.decode(value),
    log,
    counted: metrics.counter(
      'commands_total',
      'Payout requests by their outcome at intake, and dead letters',
      ['outcome'],
    ),
  }
  const intake = new Intake(deps)
  /** By partition: where the batch began that failed last. */
  const failedAt = new Map<number, bigint>()
  const partOf = (partition: number) => `intake of partition ${partition}`
  const succeeded = (partition: number) => {
    failedAt.delete(partition)
    lifecycle.heartbeats.succeed(partOf(partition))
  }
  const consumption = consumeBatches({
    connection: config.kafka,
    groupId: config.kafkaGroup,
    topics: [ledger.topics.commands],
    partitionsAtOnce: 16,
    async begin(at, logOf, known) {
      const merchantIds = [...config.merchants.keys()]
      const begins = await startingOffset(at, logOf, { ledger, merchantIds, log }, known)
      // What failed was stored after all, by its unanswered commit or by another process.
      if (begins.offset > (failedAt.get(at.partition) ?? begins.offset)) succeeded(at.partition)
      return begins
    },
    async handler(batch) {
      try {
        await intake.process(batch)
        succeeded(batch.partition)
      } catch (error) {
        failedAt.set(batch.partition, batch.stored.offset)
        lifecycle.heartbeats.fail(partOf(batch.partition))
        throw error
      }
    },
    async ready(failure) {
      try {
        const [able] = await ledger.db.run(takesWrites, { large: LARGE })
        if (!able) throw new Error('the database takes no writes')
        // It keeps the schemas that it has read.
        const [subject] = schemaSubjects(ledger.topics) as [SchemaSubject]
        if (failure instanceof RegistryAway) await connectRegistry(config.registry).lookUp(subject)
        lifecycle.heartbeats.succeed('intake')
      } catch (error) {
        lifecycle.heartbeats.fail('intake')
        throw error
      }
    },
    sign: () => lifecycle.heartbeats.sign('intake'),
    log,
  })
  const rounds: WaitingDeps['rounds'] = new Rounds()
  const stuckSince: WaitingDeps['stuckSince'] = new Map()
  lifecycle.loop('commands that wait', (sign) =>
    processWaiting({ ...deps, rounds, stuckSince, ledger: { ...ledger, db: signing(sign, ledger.db) } }),
  )
  lifecycle.own('intake', async () => {
    await consumption.stop()
    lifecycle.heartbeats.forget('intake')
  })
}
