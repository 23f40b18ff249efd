import { pause } from '../running/lifecycle.ts'
import { aborted, type ConsumeOptions, ConsumerSession, OnlyFails } from './consumer-session.ts'

export type { ConsumeOptions } from './consumer-session.ts'

export interface Consumption {
  /** The partitions being read now, as `topic/partition`: empty while the broker is away. */
  reading(): string[]
  /** Resolves when the handlers are done with their batches and the consumer has left the group. */
  stop(): Promise<void>
}

const AWAY_MS = 10_000

/** A member that cannot work would take partitions from those that can, each time it joins. */
async function pauseUntilReady(
  { groupId, ready, awayMs = AWAY_MS, sign, log }: ConsumeOptions,
  { failure, cause }: OnlyFails,
  signal: AbortSignal,
): Promise<void> {
  const stopped = aborted(signal).then(() => true)
  let known = textOf(cause)
  for (let isReady = false; !isReady; ) {
    await pause(awayMs, signal)
    sign?.()
    const asked = ready?.(failure).then(
      () => true,
      (err: unknown) => {
        if (textOf(err) !== known) log.warn({ err, groupId }, 'still cannot work, for another reason')
        known = textOf(err)
        return false
      },
    )
    isReady = await Promise.race([stopped, asked ?? true])
  }
  if (!signal.aborted) log.info({ groupId }, 'joins the group again')
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Reads topics as a member of a consumer group, at least once and without a gap, until stopped. It commits offsets
 * to Kafka only to show lag. KafkaJS stops for good after some failures, so every crash of any kind leads to a new
 * consumer.
 */
export function consumeBatches(options: ConsumeOptions): Consumption {
  const abort = new AbortController()
  let session: ConsumerSession | undefined
  const running = (async () => {
    for (let failures = 0; !abort.signal.aborted; failures++) {
      options.sign?.()
      session = new ConsumerSession(options, abort.signal)
      try {
        await session.run()
      } catch (error) {
        if (session.hasRead) failures = 0
        if (error instanceof OnlyFails) {
          options.log.warn(
            { err: error, groupId: options.groupId },
            'left the group, so that others get the partitions',
          )
          await pauseUntilReady(options, error, abort.signal)
          continue
        }
        const retryInMs = Math.min(10_000, 250 * 2 ** failures)
        const line = { err: error, groupId: options.groupId, retryInMs }
        if (failures === 0) options.log.warn(line, 'Kafka consumer lost, restarting it until it reads again')
        else options.log.debug(line, 'Kafka consumer lost again, restarting it')
        await pause(retryInMs, abort.signal)
      }
    }
  })()
  return {
    reading: () => session?.reading() ?? [],
    async stop() {
      abort.abort()
      await running
    },
  }
}
