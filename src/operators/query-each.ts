import type { Clock } from '../platform/running/clock.ts'
import { pause } from '../platform/running/lifecycle.ts'
import { eachPayout } from './each-payout.ts'
import { Pace } from './reconcile/pace.ts'

/** The result of one query. `not-yet`: an answer, but it takes another pass; `silent`: no knowledge. */
export type QueryResult = 'answered' | 'not-yet' | 'silent'

export type EachQuery = {
  /** The next payouts to ask about, in the order of their ids, after the given one; '' is the beginning. */
  waiting: (after: string, limit: number) => Promise<{ payoutId: string }[]>
  /** Asks about one payout and stores the answer. */
  ask: (payoutId: string) => Promise<QueryResult>
  /** How often to ask about a payout while the gateway does not answer about it. */
  passes: number
  /** Milliseconds from one pass to the next. */
  betweenMs: number
  ratePerSecond: number
  clock: Clock
  /** Ends the run; a query under way is still stored. */
  signal: AbortSignal
}

/** `interrupted`: by the signal. `silent`: so many answers in a row said nothing that queryEach skipped the rest. */
export type Ending = 'all-asked' | 'interrupted' | 'silent'

/** Queries under way at once. */
const AT_ONCE = 8
const PAGE = 200
/** So many answers in a row without knowledge end the run. */
const SILENCE = 25

/** Asks the gateway about the payouts, at most so many per second, until it has answered about all or the passes end. */
export async function queryEach(asking: EachQuery): Promise<Ending> {
  const { ask, passes, betweenMs, signal } = asking
  const pace = new Pace(asking.ratePerSecond, asking.clock)
  let silence = 0
  for (let pass = 1; ; pass++) {
    const waiting = eachPayout((after) => asking.waiting(after, PAGE))
    let unanswered = 0
    const worker = async () => {
      for (;;) {
        await pace.turn(signal)
        if (signal.aborted || silence >= SILENCE) return
        const next = await waiting.next()
        if (next.done) return
        const result = await ask(next.value.payoutId)
        silence = result === 'silent' ? silence + 1 : 0
        if (result !== 'answered') unanswered++
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    if (signal.aborted) return 'interrupted'
    if (silence >= SILENCE) return 'silent'
    if (unanswered === 0 || pass === passes) return 'all-asked'
    await pause(betweenMs, signal)
  }
}
