import { compile } from '../../src/platform/kafka/avro.ts'
import type { Log } from '../../src/platform/kafka/places.ts'
import type { IncomingRecord, OutgoingRecord } from '../../src/platform/kafka/records.ts'
import type { Registry, SchemaSubject } from '../../src/platform/kafka/registry.ts'

const PARTITIONS = 2

/** Logs in memory, as a broker keeps them: each partition in order, and nothing is ever lost. */
export class Kafka {
  /** `payout.commands`, by partition. */
  readonly commands: IncomingRecord[][] = Array.from({ length: PARTITIONS }, () => [])
  /** What payoutd published, on whatever topic, in the order in which it came. */
  readonly published: OutgoingRecord[] = []

  /** Upstream produces a command. */
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
