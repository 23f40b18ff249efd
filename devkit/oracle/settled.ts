import { ExpectedFailure } from '../../src/platform/expected-failure.ts'
import { type Database, sql } from '../../src/platform/postgres/postgres.ts'
import type { Clock } from '../../src/platform/running/clock.ts'
import { pause } from '../../src/platform/running/lifecycle.ts'
import type { Gateway } from './gateway-books.ts'
import { type RequestedPayout, whose } from './outcome.ts'
import type { TopicRecorder } from './topic-recorder.ts'

export type Settling = {
  asked: readonly RequestedPayout[]
  recorder: TopicRecorder
  gateway: Pick<Gateway, 'books'>
  db: Database
  clock: Clock
  /** Aborted: stops waiting and rejects with the reason. */
  signal: AbortSignal
  onProgress: (done: number) => void
  /** Gives up once nothing has ended for this many ms; 90 s by default. */
  patienceMs?: number
}

/** The longest planned silence is a circuit's, which opens for a minute at most. */
const PATIENCE_MS = 90_000
/** Late callbacks follow each other within this time, or come a minute later. */
const LAST_CALLBACKS_MS = 1_500
const LOOK_EVERY_MS = 50

/**
 * Waits until each payout has ended or is in review and everything about it was published and read, late callbacks
 * included. Once no more payouts end, throws an ExpectedFailure that names what is missing.
 */
export async function untilSettled(settling: Settling): Promise<void> {
  const { recorder, db, clock } = settling
  await untilAllDone(settling)
  await untilNoCallbacksCome(settling)
  const allRead = async () => (await db.run(unpublished, {})).length === 0 && (await recorder.hasReadAll())
  const giveUp = clock.monotonic() + (settling.patienceMs ?? PATIENCE_MS)
  while (!(await allRead())) {
    if (clock.monotonic() > giveUp)
      throw new ExpectedFailure('payoutd has not published everything, or it cannot be read')
    await look(settling)
  }
}

const unpublished = sql<object, { position: bigint }>`select position from outbox limit 1`

async function untilAllDone(settling: Settling): Promise<void> {
  const { asked, recorder, clock, onProgress, patienceMs = PATIENCE_MS } = settling
  let done = -1
  let movedAt = clock.monotonic()
  while (done < asked.length) {
    await look(settling)
    const now = asked.filter((each) => recorder.isDone(each)).length
    if (now !== done) movedAt = clock.monotonic()
    done = now
    onProgress(done)
    if (clock.monotonic() > movedAt + patienceMs) throw stalled(asked, recorder, patienceMs)
  }
}

const MOST_NAMED = 10

function stalled(
  asked: readonly RequestedPayout[],
  recorder: TopicRecorder,
  patienceMs: number,
): ExpectedFailure {
  const states = new Map(recorder.told.events.map((event) => [whose(event), event.toState]))
  const missing = asked.filter((each) => !recorder.isDone(each))
  const named = missing
    .slice(0, MOST_NAMED)
    .map((each) => `  row ${each.row} (${each.payoutId}) is ${states.get(whose(each)) ?? 'not heard of'}`)
  const more = missing.length > MOST_NAMED ? [`  and ${missing.length - MOST_NAMED} more`] : []
  const what = `nothing ended for ${patienceMs / 1000} s, and ${missing.length} payouts have no end yet:`
  return new ExpectedFailure([what, ...named, ...more].join('\n'))
}

/** A callback may come after the end, and contradict it. */
async function untilNoCallbacksCome(settling: Settling): Promise<void> {
  const { gateway, clock } = settling
  let before = -1
  let movedAt = clock.monotonic()
  for (;;) {
    const { callbacksOutstanding } = (await gateway.books()).orders
    if (callbacksOutstanding !== before) movedAt = clock.monotonic()
    before = callbacksOutstanding
    if (before === 0 || clock.monotonic() > movedAt + LAST_CALLBACKS_MS) return
    await look(settling)
  }
}

async function look({ signal }: Settling): Promise<void> {
  await pause(LOOK_EVERY_MS, signal)
  signal.throwIfAborted()
}
