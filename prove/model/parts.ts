import { afterAnswers, covered, gate } from '../../src/dispatch/pace.ts'
import { cancel } from '../../src/payout/cancel.ts'
import type { Instant } from '../../src/payout/instant.ts'
import { JUDGEMENT, type Judgement } from '../../src/payout/judgement.ts'
import { resolve } from '../../src/payout/resolve.ts'

/** What a simulated payoutd is composed of. A safeguard is missing where a part is another than the product's. */
export type Parts = Judgement & {
  cancel: typeof cancel
  resolve: typeof resolve
  gate: typeof gate
  covered: typeof covered
  afterAnswers: typeof afterAnswers
  /** The lease fence: asked in the tick that hands the bytes over. Both in ms of one process's clock. */
  maySend: (now: Instant, sendBefore: Instant) => boolean
  commitsIntent: 'before the send' | 'with the answer'
  forgetsMessages: 'once published' | 'when read'
  movesOffset: 'with the commands' | 'before them'
}

/** The product's own decisions, and the order in which its stages do things. */
export const PRODUCT: Parts = {
  ...JUDGEMENT,
  cancel,
  resolve,
  gate,
  covered,
  afterAnswers,
  maySend: (now, sendBefore) => now < sendBefore,
  commitsIntent: 'before the send',
  forgetsMessages: 'once published',
  movesOffset: 'with the commands',
}
