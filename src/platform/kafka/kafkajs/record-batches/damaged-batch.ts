import type { BatchMessage, DamagedEnd } from './record-batch.ts'

/** The only message of a batch of which nothing else is used. Its offset is not known yet. */
export const damagedBatch = (batchFirst: bigint, damaged: DamagedEnd): BatchMessage => ({
  ...{ offset: '0', timestamp: '0', attributes: 0, key: null, value: null, headers: {} },
  ...{ isControlRecord: false, leaderEpoch: null, batchFirst },
  batchContext: { producerId: '-1', inTransaction: false },
  damaged,
})

/**
 * The messages of a fetch to hand to KafkaJS, which drops those before the offset fetched from. A damaged batch gets its
 * offset, at which it is read as one unreadable record: reading goes on behind it, and neither stands still nor skips an intact
 * batch that is seen. Kafka finds a batch by its last offset, so one that ends before `from` is damaged, too. `high`: the offset
 * behind the last that Kafka has.
 */
export function placeDamaged(messages: BatchMessage[], from: bigint, high: bigint): BatchMessage[] {
  const [first, last] = [messages[0], messages.at(-1)]
  if (!first || !last) return messages
  if (first.damaged) return [placed(first, first.damaged, from, high)]
  const named = BigInt(last.offset)
  if (named >= from) return messages
  const damaged = { named, next: null }
  return [placed(damagedBatch(first.batchFirst, damaged), damaged, from, high)]
}

function placed(
  message: BatchMessage,
  { named, next }: DamagedEnd,
  from: bigint,
  high: bigint,
): BatchMessage {
  const ends = [next === null ? named : next - 1n, high - 1n].sort((a, b) => (a < b ? -1 : 1))
  const end = ends[0] !== undefined && ends[0] > from ? ends[0] : from
  const known =
    next === null
      ? `no intact batch was seen right behind it, its header names ${named} as its last offset, and Kafka had offsets up to ${high - 1n}`
      : `the batch behind it begins at ${next}`
  const detail =
    `a batch of the offsets ${from} to ${end} is damaged: its checksum, format or offset was wrong each time it was fetched; ` +
    known
  return { ...message, offset: end.toString(), unreadable: { reason: 'unreadable-batch', detail } }
}
