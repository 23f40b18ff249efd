import { createRequire } from 'node:module'
import { patchKafkajs } from './kafkajs/patch-kafkajs.ts'

type EncodeRecords = (record: { offsetDelta: number }) => unknown

const require = createRequire(import.meta.url)
const ENCODER = 'kafkajs/src/protocol/recordBatch/record/v0/index.js'

patchKafkajs()
const encode = require(ENCODER) as EncodeRecords
let names: readonly number[] | undefined

// KafkaJS loads its record encoder when it first sends records.
const cached = require.cache[require.resolve(ENCODER)]
if (cached) {
  cached.exports = (record: { offsetDelta: number }) =>
    encode({ ...record, offsetDelta: names?.[record.offsetDelta] ?? record.offsetDelta })
}

/** During `send`, KafkaJS writes these offsets into the records of a batch, relative to the first, as any client can. */
export async function withOffsets(offsets: readonly number[], send: () => Promise<unknown>): Promise<void> {
  names = offsets
  try {
    await send()
  } finally {
    names = undefined
  }
}
