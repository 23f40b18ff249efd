import { randomUUID } from 'node:crypto'
import kafkajs, { CompressionTypes } from 'kafkajs'
import { SHARDS } from '../../src/messages/messages.ts'
import { topicNames } from '../../src/messages/topics.ts'
import { kafkaFor } from '../../src/platform/kafka/connection.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { inWorld, type Scene, start } from '../scenes.ts'
import type { WorldMerchant } from '../world/merchants.ts'
import { commandOf, MIX } from '../world/world.ts'

const insertLarge = sql<{ shard: number; topic: string; eventId: string; value: Buffer }>`
  insert into outbox (shard, topic, keys, event_ids, types, contents, headers, bytes)
  values (${'shard'}, ${'topic'}, '{acme:large}', array[${'eventId'}::uuid], '{in.payoutd.PayoutEvent}',
          array[${'value'}::bytea], array[null::jsonb], octet_length(${'value'}::bytea))`
const countEarly = sql<object, { count: number }>`select count(*)::int as count from early_cancels`
const countRefused = sql<object, { count: number }>`select count(*)::int as count from outbox_refused`

/** Each shard has a message that Kafka refuses, ahead of everything else to publish. */
export const refusedMessages: Scene = {
  name: 'Kafka refuses messages of the outbox',
  play: (bench, without) =>
    inWorld(bench, {}, async (world) => {
      const { events: topic } = topicNames(world.config.topicPrefix)
      const shards = Array.from({ length: SHARDS }, (_, shard) => shard)
      for (const shard of shards) {
        await world.db.run(insertLarge, {
          shard,
          topic,
          eventId: randomUUID(),
          value: Buffer.alloc(2_000_000),
        })
      }
      await start(world, without)
      await world.ask(26)
      if (!without) {
        await eventually('all of them put aside', async () => {
          const [refused] = await world.db.run(countRefused, {})
          return refused?.count === shards.length
        })
      }
      return shards.length
    }),
}

/** Commands in every codec of Kafka, and between them batches that unpack to more than memory holds. */
export const compressedCommands: Scene = {
  name: 'commands in every compression, and batches that unpack beyond the limit',
  play: (bench, without) =>
    inWorld(bench, {}, async (world) => {
      const ended = new AbortController()
      const kafka = kafkaFor(world.config.kafka, silentLogger, ended.signal)
      const { commands: topic } = topicNames(world.config.topicPrefix)
      const [admin, producer] = [kafka.admin(), kafka.producer()]
      await Promise.all([admin.connect(), producer.connect()])
      const value = Buffer.alloc(20_000_000)
      try {
        await start(world, without)
        for (const compression of ['gzip', 'snappy', 'lz4', 'zstd']) {
          // The broker recompresses what it gets.
          await setConfig(admin, topic, 'compression.type', compression)
          await world.ask(8)
          await setConfig(admin, topic, 'compression.type', 'producer')
          for (const partition of [0, 1]) {
            await producer.send({
              topic,
              compression: CompressionTypes.GZIP,
              messages: [{ value, partition }],
            })
          }
        }
      } finally {
        await Promise.all([admin.disconnect(), producer.disconnect()])
        ended.abort()
      }
      return 8
    }),
}

/** While payoutd is down, the topic is deleted and created again, and gets longer than what payoutd had read. */
export const topicMadeAgain: Scene = {
  name: 'the topic of commands is deleted and made again, longer than before',
  play: (bench, without) =>
    inWorld(bench, {}, async (world) => {
      const { commands: topic } = topicNames(world.config.topicPrefix)
      const ended = new AbortController()
      const kafka = kafkaFor(world.config.kafka, silentLogger, ended.signal)
      const [admin, producer] = [kafka.admin(), kafka.producer()]
      await admin.connect()
      try {
        const first = await start(world, without)
        await world.ask(26)
        await world.verdict({ signal: bench.signal })
        await first.kill()
        await admin.deleteTopics({ topics: [topic] })
        await eventually('the topic made again', () =>
          admin
            .createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 2 }] })
            .catch(() => false),
        )
        await world.ask(26)
        await producer.connect()
        for (const partition of [0, 1]) {
          const messages = Array.from({ length: 26 }, () => ({ value: Buffer.from('no command'), partition }))
          await producer.send({ topic, messages })
        }
        await start(world, without)
      } finally {
        await Promise.all([admin.disconnect(), producer.disconnect()])
        ended.abort()
      }
      return 1
    }),
}

/** The consumer sees the cancellations before the commands. */
export const cancelFirst: Scene = {
  name: 'cancellations arrive before their commands',
  play: (bench, without) =>
    inWorld(bench, {}, async (world) => {
      await start(world, without)
      const { merchantId } = world.merchants[0] as WorldMerchant
      const commands = Array.from({ length: 6 }, (_, i) => ({
        ...commandOf(1_000 + i, `${MIX.usual}${i}000000`),
        merchantId,
      }))
      await world.cancel(commands)
      await eventually('the cancellations', async () => {
        const [early] = await world.db.run(countEarly, {})
        return early?.count === commands.length
      })
      world.expect(commands)
      await world.publish(commands)
      world.mustEndAs(
        'cancelled',
        commands.map(({ payoutId }) => payoutId),
      )
      await world.ask(13)
      return commands.length
    }),
}

type Admin = ReturnType<ReturnType<typeof kafkaFor>['admin']>

async function setConfig(admin: Admin, topic: string, name: string, value: string): Promise<void> {
  const resources = [
    { type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name, value }] },
  ]
  await admin.alterConfigs({ validateOnly: false, resources })
}
