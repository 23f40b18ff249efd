import { type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import type { Partition } from '../../platform/kafka/consumer-session.ts'
import { isLost, type Log, type Standing, type Start, startAt } from '../../platform/kafka/offsets.ts'
import type { Logger } from '../../platform/log.ts'
import { ALL_FENCED, fenceAfterRewind, isSetBack, rewindInWords } from './offset-rewind.ts'
import { beginAt, standing } from './sql/offsets.ts'

export type StartingOffsetDeps = {
  ledger: Ledger
  /** The merchants whose commands the topic holds. */
  merchantIds: readonly string[]
  log: Logger
}

/**
 * Where intake goes on reading a partition. It moves past records lost between the ledger and Kafka once, and never in silence:
 * every merchant gets an anomaly, because nobody can say whose commands they were. `known`: the ledger's earlier position, or how
 * far the partition was read for it. A ledger that lacks that was set back, or is not the only one, so every merchant is fenced
 * before anything is read again.
 */
export async function startingOffset(
  at: Partition,
  logOf: (epoch?: number | null) => Promise<Log>,
  { ledger, merchantIds, log }: StartingOffsetDeps,
  known: Standing | null = null,
): Promise<Standing> {
  for (;;) {
    const [before] = await ledger.db.run(standing, at)
    const held = await logOf(before?.epoch)
    const start = startAt(before ?? null, held)
    const epoch = start.remark === 'none' ? before?.epoch : null
    const begun = {
      offset: start.offset,
      logId: held.id ?? before?.logId ?? null,
      ...(epoch != null && { epoch }),
    }
    const forgotten = known && isSetBack(known, before) ? rewindInWords(at, known, before) : null
    const isMoved = !before || start.remark !== 'none' || before.logId !== begun.logId
    if (!isMoved && forgotten === null) return begun
    const lost = before ? lossOf(at, before, held, start.remark) : null
    let fenced: string[] = []
    const isBegun = await ledger.db.transaction('begin partition', async (tx) => {
      const compared = { before: before?.offset ?? null, beforeLogId: before?.logId ?? null }
      const [moved] = await tx.run(beginAt, { ...at, ...begun, ...compared })
      if (moved && lost) await storeDecisions(tx, ledger, merchantIds.map(anomalyOf(lost)))
      if (moved && forgotten !== null) fenced = await fenceAfterRewind(tx, forgotten, { ledger, merchantIds })
      return moved !== undefined
    })
    if (!isBegun) continue
    if (lost) log.error({ ...at, kind: lost.kind }, lost.detail)
    if (fenced.length > 0) log.error({ ...at, reason: forgotten }, ALL_FENCED)
    return begun
  }
}

type CommandLoss = { kind: 'commands-lost' | 'commands-replaced'; detail: string }

/** The loss in words, with the offsets concerned. */
function lossOf(
  { topic, partition }: Partition,
  before: Standing,
  { id, low, high, epochEnd }: Log,
  remark: Start['remark'],
): CommandLoss | null {
  const where = `partition ${partition} of ${topic}`
  switch (remark) {
    case 'none':
      return null
    case 'records-gone':
      return {
        kind: 'commands-lost',
        detail:
          `Kafka dropped the offsets ${before.offset} to ${low - 1n} of ${where} before payoutd had read them. Ask the senders to ` +
          'send again each command that has no result, under its payoutId: payoutd does not pay again what this ledger has. A ' +
          'ledger that was set back may lack paid payouts and pay them again: run payoutd recover first, and compare with the ' +
          'orders at the gateway',
      }
    case 'log-is-older':
      return {
        kind: 'commands-replaced',
        detail:
          `${where} ${isLost(before, epochEnd) ? `has other records from offset ${epochEnd} on` : `ends at offset ${high}`}, but payoutd ` +
          `had read it up to ${before.offset}: Kafka lost a part of it. payoutd reads again all that is there. Ask the senders ` +
          'to send the lost commands again',
      }
    case 'another-log':
      return {
        kind: 'commands-replaced',
        detail:
          `${topic} was deleted and created again (its id was ${before.logId} and is ${id}). payoutd had read ${where} up to ` +
          `offset ${before.offset}, and now reads it from ${low} on. Ask the senders to send again the commands of the old topic ` +
          'that payoutd had not read',
      }
  }
}

const anomalyOf =
  ({ kind, detail }: CommandLoss) =>
  (merchantId: string) => ({
    anomaly: {
      merchantId,
      payoutId: null,
      orderNo: null,
      kind,
      detail,
      source: 'COMMAND' as const,
      exchange: null,
    },
  })
