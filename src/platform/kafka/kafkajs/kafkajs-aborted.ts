import { createRequire } from 'node:module'
import type { BatchMessage } from './record-batches/record-batch.ts'

export type AbortedTransaction = { producerId: string; firstOffset: string }
type FetchedPartition = { messages: BatchMessage[]; abortedTransactions: AbortedTransaction[] | null }
type FetchedResponse = { responses: { partitions: FetchedPartition[] }[] }
type FetchAnswer = { parse(fetched: FetchedResponse): Promise<FetchedResponse> }

const require = createRequire(import.meta.url)
/** From the first version that reports transactions to the last that KafkaJS speaks. */
const VERSIONS = [4, 5, 6, 7, 8, 9, 10, 11]

/**
 * KafkaJS 2.2.4 passes on records of aborted transactions if several transactions overlap, or if one of their
 * records has the key of an abort marker: its list of them is not sorted, and it looks at one entry per record.
 * payoutd removes these records first and gives KafkaJS an empty list. KafkaJS also drops a fetch of which nothing
 * is left. So that the store learns how far was read, the last message of a fetch always arrives.
 */
export function leaveOutAborted(): void {
  for (const version of VERSIONS) {
    const response = require(`kafkajs/src/protocol/requests/fetch/v${version}/response.js`) as FetchAnswer
    const { parse } = response
    response.parse = async (data) => {
      const fetched = await parse(data)
      for (const partition of fetched.responses.flatMap(({ partitions }) => partitions)) {
        partition.messages = withLast(
          passOverAborted(partition.messages, partition.abortedTransactions ?? []),
        )
        partition.abortedTransactions = []
      }
      return fetched
    }
  }
}

/**
 * Returns the same messages, with those of aborted transactions turned into control records: KafkaJS passes them to
 * nobody, but their offsets count. `messages` are sorted by offset, `aborted` may be in any order.
 */
export function passOverAborted(
  messages: BatchMessage[],
  aborted: readonly AbortedTransaction[],
): BatchMessage[] {
  if (aborted.length === 0) return messages
  const left = aborted
    .map(({ producerId, firstOffset }) => ({ producerId, first: BigInt(firstOffset) }))
    .sort((a, b) => (a.first < b.first ? -1 : 1))
  const open = new Set<string>()
  return messages.map((message) => {
    const { producerId, inTransaction } = message.batchContext
    while (left[0] && left[0].first <= BigInt(message.offset)) open.add(left.shift()?.producerId as string)
    if (isAbortMarker(message)) open.delete(producerId)
    return inTransaction && open.has(producerId) ? { ...message, key: null, isControlRecord: true } : message
  })
}

const withLast = (messages: BatchMessage[]): BatchMessage[] =>
  messages.map((message, i) =>
    i === messages.length - 1 && message.isControlRecord
      ? { ...message, isControlRecord: false, isPassedOver: true }
      : message,
  )

/** A control record's key: its version, then 0 for an abort and 1 for a commit, 16 bits each. */
const isAbortMarker = ({ isControlRecord, key }: BatchMessage): boolean =>
  isControlRecord && key !== null && key.length >= 4 && key.readInt16BE(2) === 0
