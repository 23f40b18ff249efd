import { type Bench, type Row, rowOf } from '../matrix.ts'
import { compressedCommands, refusedMessages } from '../scenes/kafka-edges.ts'

/** What Kafka delivers and refuses beyond the messages of payoutd and its producers. */
export async function* kafkaEdges(bench: Bench): AsyncGenerator<Row> {
  for (const { name, play } of [compressedCommands, refusedMessages]) {
    bench.signal.throwIfAborted()
    bench.tell(name)
    const { faults, ...verdict } = await play(bench)
    yield rowOf({ section: 'kafka-edges', name, runs: 1, faults }, verdict)
  }
}
