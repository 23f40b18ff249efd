import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type AbortedTransaction, passOverAborted } from './kafkajs-aborted.ts'
import type { BatchMessage } from './record-batches/record-batch.ts'

type Story = { log: { message: BatchMessage; isAborted: boolean }[]; aborted: AbortedTransaction[] }

const LIKE_A_MARKER = Buffer.from([0, 0, 0, 0])

/** What three producers do in turns, and how a broker keeps and lists it: a broker lists a transaction when it ends. */
function storyOf(turns: readonly { producer: number; act: 'send' | 'commit' | 'abort' }[]): Story {
  const log: Story['log'] = []
  const aborted: AbortedTransaction[] = []
  const open = new Map<number, Story['log']>()
  for (const { producer, act } of turns) {
    const sent = open.get(producer) ?? []
    const isMarker = act !== 'send'
    if (isMarker && sent.length === 0) continue
    const key = isMarker ? Buffer.from([0, 0, 0, act === 'abort' ? 0 : 1]) : LIKE_A_MARKER
    const batchContext = { producerId: `${producer}`, inTransaction: true }
    const message = { offset: `${log.length}`, key, isControlRecord: isMarker, batchContext } as BatchMessage
    const entry = { message, isAborted: false }
    log.push(entry)
    if (!isMarker) open.set(producer, [...sent, entry])
    else open.delete(producer)
    if (act !== 'abort') continue
    for (const each of sent) each.isAborted = true
    aborted.push({ producerId: `${producer}`, firstOffset: sent[0]?.message.offset as string })
  }
  const unended = new Set([...open.values()].flat())
  return { log: log.filter((entry) => !unended.has(entry)), aborted }
}

test('however transactions overlap, exactly the committed records are passed on, wherever reading begins', () => {
  const turn = fc.record({
    producer: fc.nat(2),
    act: fc.constantFrom('send' as const, 'send' as const, 'commit' as const, 'abort' as const),
  })
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 30 }), fc.nat(10), (turns, from) => {
      const { log, aborted } = storyOf(turns)
      const read = log.slice(from)
      const markers = log.filter(({ message }) => message.isControlRecord).map(({ message }) => message)
      // A broker lists the transactions that end after the offset where reading begins.
      const listed = aborted.filter(({ producerId, firstOffset }) => {
        const end = markers.find(
          ({ offset, batchContext }) =>
            batchContext.producerId === producerId && Number(offset) > Number(firstOffset),
        )
        return Number(end?.offset) >= Number(read[0]?.message.offset)
      })
      const handed = passOverAborted(
        read.map(({ message }) => message),
        listed,
      )
      assert.deepEqual(
        handed.map(({ offset }) => offset),
        read.map(({ message }) => message.offset),
      )
      assert.deepEqual(
        handed.filter(({ isControlRecord }) => !isControlRecord).map(({ offset }) => offset),
        read
          .filter(({ message, isAborted }) => !message.isControlRecord && !isAborted)
          .map(({ message }) => message.offset),
      )
    }),
    { numRuns: 3_000 },
  )
})
