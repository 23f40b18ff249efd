import type { Clock } from '../platform/clock.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { pause } from '../platform/lifecycle.ts'
import { type Database, sql } from '../platform/postgres.ts'
import type { Gateway } from './gateway-books.ts'
import { type Asked, whose } from './outcome.ts'
import type { Witness } from './witness.ts'

export type Settling = {
  asked: readonly Asked[]
  witness: Witness
  gateway: Pick<Gateway, 'books'>
  db: Database
  clock: Clock
  /** Aborted: stops waiting and rejects with the reason. */
  signal: AbortSignal
  onProgress: (done: number) => void
  /** Gives up once nothing has ended for so many ms; 90 s if not given. */
  patienceMs?: number
}

/** The longest quiet moment that is planned for is that of a circuit, which opens for a minute at most. */
const PATIENCE_MS = 90_000
/** Callbacks that are late come within this time of one another, or a minute later. */
const LAST_CALLBACKS_MS = 1_500
const LOOK_EVERY_MS = 50

/**
 * Waits until each payout ended or is in review and everything about it was published and read, late
 * callbacks included. Throws an ExpectedFailure that names what is missing once nothing ends any more.
 */
export async function untilSettled(settling: Settling): Promise<void> {
  const { witness, db, clock } = settling
  await untilAllDone(settling)
  await untilNoCallbacksCome(settling)
  const allRead = async () => (await db.run(unpublished, {})).length === 0 && (await witness.hasReadAll())
  const giveUp = clock.monotonic() + (settling.patienceMs ?? PATIENCE_MS)
  while (!(await allRead())) {
    if (clock.monotonic() > giveUp)
      throw new ExpectedFailure('payoutd has not published everything, or it cannot be read')
    await look(settling)
  }
}

const unpublished = sql<object, { position: bigint }>`select position from outbox limit 1`

async function untilAllDone(settling: Settling): Promise<void> {
  const { asked, witness, clock, onProgress, patienceMs = PATIENCE_MS } = settling
  let done = -1
  let movedAt = clock.monotonic()
  while (done < asked.length) {
    await look(settling)
    const now = asked.filter((each) => witness.isDone(each)).length
    if (now !== done) movedAt = clock.monotonic()
    done = now
    onProgress(done)
    if (clock.monotonic() > movedAt + patienceMs) throw stalled(asked, witness, patienceMs)
  }
}

const MOST_NAMED = 10

function stalled(asked: readonly Asked[], witness: Witness, patienceMs: number): ExpectedFailure {
  const states = new Map(witness.told.events.map((event) => [whose(event), event.toState]))
  const missing = asked.filter((each) => !witness.isDone(each))
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
