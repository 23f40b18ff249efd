import { createRequire } from 'node:module'

type EncodeRecords = (record: { offsetDelta: number }) => unknown

const require = createRequire(import.meta.url)
const ENCODER = 'kafkajs/src/protocol/recordBatch/record/v0/index.js'

const encode = require(ENCODER) as EncodeRecords
let names: readonly number[] | undefined

// KafkaJS asks for its encoder of records when it first sends some.
const cached = require.cache[require.resolve(ENCODER)]
if (cached) {
  cached.exports = (record: { offsetDelta: number }) =>
    encode({ ...record, offsetDelta: names?.[record.offsetDelta] ?? record.offsetDelta })
}

/** While it sends, KafkaJS writes these offsets into the records of a batch, counted from its first, as any client can. */
export async function withOffsets(offsets: readonly number[], send: () => Promise<unknown>): Promise<void> {
  names = offsets
  try {
    await send()
  } finally {
    names = undefined
  }
}
