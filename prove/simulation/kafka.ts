import type { Log } from '../../src/platform/kafka/offsets.ts'
import type { MessageRefusal } from '../../src/platform/kafka/producer.ts'
import type { IncomingRecord, OutgoingRecord } from '../../src/platform/kafka/records.ts'
import { compile } from '../../src/platform/registry/avro.ts'
import type { Registry, SchemaSubject } from '../../src/platform/registry/registry.ts'

const PARTITIONS = 2

/** Logs in memory, as a broker keeps them: each partition in order, without any loss. */
export class Kafka {
  /** `payout.commands`, by partition. */
  readonly commands: IncomingRecord[][] = Array.from({ length: PARTITIONS }, () => [])
  /** What payoutd published, on any topic, in order of arrival. */
  readonly published: OutgoingRecord[] = []

  /** Keys whose every message it refuses as too large. */
  readonly refusedKeys = new Set<string>()
  /** Keys of messages that it ever refused: those that it accepts later come out of order. */
  readonly everRefused = new Set<string>()

  /** Accepts messages, and returns those that it refuses. */
  publish(records: readonly OutgoingRecord[]): MessageRefusal[] {
    const refused = records.filter(({ key }) => this.refusedKeys.has(String(key)))
    this.published.push(...records.filter((record) => !refused.includes(record)))
    for (const { key } of refused) this.everRefused.add(String(key))
    return refused.map((record) => ({ record, reason: 'MESSAGE_TOO_LARGE' }))
  }

  /** The messages of a topic, as a consumer reads them. */
  topic(name: string): IncomingRecord[] {
    return this.published
      .filter(({ topic }) => topic === name)
      .map(({ key, value }, i) => ({
        ...{ offset: BigInt(i), key: Buffer.from(String(key)), value, headers: {}, timestamp: 0 },
      }))
  }

  /** The upstream system produces a command. */
  append(partition: number, key: string, value: Buffer, timestamp: number): void {
    const log = this.commands[partition % PARTITIONS] as IncomingRecord[]
    const offset = BigInt(log.length)
    log.push({ offset, key: Buffer.from(key), value, headers: {}, timestamp })
  }

  log(partition: number): Log {
    return {
      id: 'the only one',
      low: 0n,
      high: BigInt((this.commands[partition] as IncomingRecord[]).length),
    }
  }

  read(partition: number, from: bigint, most: number): IncomingRecord[] {
    return (this.commands[partition] as IncomingRecord[]).slice(Number(from), Number(from) + most)
  }
}

/** A registry in memory that has these schemas. */
export function registryOf(subjects: readonly SchemaSubject[]): Registry {
  const idOf = async ({ schema }: SchemaSubject) => subjects.findIndex((each) => each.schema === schema) + 1
  return {
    register: idOf,
    lookUp: idOf,
    async writerSchema(id) {
      const subject = subjects[id - 1]
      return subject ? compile(subject.schema) : 'unknown'
    },
  }
}
