import type { BatchDeclaration, PayoutCommand } from '../domain/commands/command.ts'
import { eventId, payoutKey } from '../domain/identifiers.ts'
import { topicKey } from '../messages/messages.ts'
import type { OutgoingRecord } from '../platform/kafka/records.ts'
import type { Checkpoint, IngestProgress } from './checkpoint.ts'
import type { CommandsTopic } from './commands-topic.ts'
import type { Summary } from './file/check-file.ts'
import { PayableDigest, ROWS_AT_ONCE } from './file/payable-digest.ts'
import type { RowSet } from './file/row-set.ts'
import type { ListFile } from './list-file.ts'
import { type Payroll, readPayroll } from './payroll.ts'

export type Publication = {
  payroll: Payroll
  summary: Summary
  payable: RowSet
  /** The digest of the rows that the check found payable. */
  digest: PayableDigest
  progress: IngestProgress
  checkpoint: Checkpoint
  commandsTopic: CommandsTopic
  /** Receives every payable row, including those that an earlier run published. */
  payouts: ListFile
  signal: AbortSignal
  onPublished: (rows: number) => void
}

/**
 * Publishes what the check found payable, in file order: the batch first, then its rows, starting after those that an earlier run
 * published. Returns how many rows are published now; fewer than there are means that the signal asked to stop. Throws if the
 * file is no longer the one that was checked, before it publishes anything unchecked.
 */
export async function publishPayroll(publication: Publication): Promise<number> {
  const { payroll, summary, payable, digest, progress, commandsTopic, payouts, signal, onPublished } =
    publication
  let published = progress.published
  if (published === 0) await declare(publication)
  let batch: OutgoingRecord[] = []
  const flush = async () => {
    await commandsTopic.publish(batch)
    published += batch.length
    batch = []
    await publication.checkpoint.save({ ...progress, published })
    onPublished(published)
  }
  const read = new PayableDigest()
  let passed = 0
  const rows = readPayroll(payroll, () => undefined)
  try {
    let next = await rows.next()
    for (; !next.done; next = await rows.next()) {
      const row = next.value
      if (!payable.has(row.row)) continue
      if (row.kind !== 'payable') throw new Error(changed(payroll, published))
      await payouts.add([String(row.row), row.reference, row.command.payoutId])
      read.add(row.command)
      if (++passed > progress.published)
        batch.push(requested({ ...row.command, fileHash: summary.fileHash }, progress, commandsTopic))
      if (passed % ROWS_AT_ONCE !== 0) continue
      if (!digest.beginsLike(read)) throw new Error(changed(payroll, published))
      if (batch.length > 0) await flush()
      if (signal.aborted) return published
    }
    if (next.value?.fileHash !== summary.fileHash) throw new Error(changed(payroll, published))
  } finally {
    await rows.return(undefined)
  }
  if (batch.length > 0) await flush()
  return published
}

async function declare({
  payroll,
  summary,
  progress,
  checkpoint,
  commandsTopic,
}: Publication): Promise<void> {
  const { merchantId, batchId } = payroll.batch
  const declared: BatchDeclaration = {
    merchantId,
    batchId,
    rows: summary.payable.rows,
    amount: summary.payable.amount,
    refused: summary.refused.rows,
    fileHash: summary.fileHash,
    declaredAt: progress.declaredAt,
  }
  await commandsTopic.publish([
    {
      topic: commandsTopic.destination.topic,
      key: topicKey(merchantId, batchId),
      value: commandsTopic.encodeDeclared(declared),
      headers: cloudEvent('PayoutBatchDeclared', eventId(merchantId, batchId, 0), progress),
    },
  ])
  await checkpoint.save(progress)
}

function requested(
  command: PayoutCommand,
  progress: IngestProgress,
  commandsTopic: CommandsTopic,
): OutgoingRecord {
  const { merchantId, payoutId } = command
  return {
    topic: commandsTopic.destination.topic,
    key: payoutKey(command),
    value: commandsTopic.encodeRequested(command),
    headers: cloudEvent('PayoutRequested', eventId(merchantId, payoutId, 0), progress),
  }
}

/** CloudEvents in the binary mode of its Kafka binding. The same row always carries the same id. */
const cloudEvent = (type: string, id: string, { declaredAt }: IngestProgress): Record<string, string> => ({
  ce_specversion: '1.0',
  ce_id: id,
  ce_type: `in.payoutd.${type}`,
  ce_source: 'payoutd/ingest',
  ce_time: new Date(declaredAt).toISOString(),
})

const changed = ({ path }: Payroll, published: number): string =>
  `somebody changed ${path} while payoutd published it: ${published} rows of the checked version are published. ` +
  'Ingest the file as it is now; payoutd does not pay published rows twice.'
