import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Instant } from '../domain/instant.ts'
import { partialOf } from '../platform/partial-file.ts'

/**
 * What makes two ingests the same one: the same bytes, with references from the same columns, for the same batch, to the same
 * Kafka topic.
 */
export type Destination = {
  clusterId: string
  topic: string
  /**
   * The id that Kafka gave the topic at its creation: a topic that was deleted and created again is empty. Null: this Kafka gives
   * none.
   */
  topicId: string | null
}
export type IngestIdentity = Destination & {
  fileHash: string
  merchantId: string
  batchId: string
  /** Columns that make up the reference; none: the file has a column for it. */
  referenceFrom: readonly string[]
}

/**
 * How far an ingest has come. `payable`: the digest of all that it publishes. `published`: how many payable rows Kafka has
 * acknowledged, in file order.
 */
export type IngestProgress = { declaredAt: Instant; payable: string; published: number }

/** Keeps the progress of one ingest in a file, so that the same command resumes where it was interrupted. */
export class Checkpoint {
  readonly path: string

  constructor(folder: string, identity: IngestIdentity) {
    const { clusterId, topic, topicId, fileHash, merchantId, batchId, referenceFrom } = identity
    const columns = referenceFrom.length > 0 ? [JSON.stringify(referenceFrom)] : []
    const name = createHash('sha256')
      .update([clusterId, topic, topicId, fileHash, merchantId, batchId, ...columns].join('\n'))
      .digest('hex')
    this.path = join(folder, `${name.slice(0, 32)}.json`)
  }

  /**
   * The progress of an earlier run that published the same. Null if there was none, or if the payable rows or their payments
   * differ now (limits have changed): then the ingest publishes everything again, which pays nobody twice.
   */
  async load(payable: string): Promise<IngestProgress | null> {
    try {
      const progress = JSON.parse(await readFile(this.path, 'utf8')) as IngestProgress
      return progress.payable === payable ? progress : null
    } catch (error) {
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  async save(progress: IngestProgress): Promise<void> {
    await mkdir(dirname(this.path), { recursive: true })
    const partial = partialOf(this.path)
    await writeFile(partial, JSON.stringify(progress))
    await rename(partial, this.path)
  }
}
