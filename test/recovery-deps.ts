import { DECISIONS } from '../src/domain/decisions.ts'
import type { RestoreDeps } from '../src/operators/restore/restore.ts'
import { systemClock } from '../src/platform/running/clock.ts'

/** What the questions of a recovery need besides its ledger, its accounts and its person: nothing is missing, and nobody stops it. */
export const recoveryDeps = (): Omit<RestoreDeps, 'ledger' | 'accounts' | 'who'> => ({
  ...{ decisions: DECISIONS, missing: new Map(), ratePerSecond: 1_000, clock: systemClock },
  ...{ signal: new AbortController().signal, onProgress: () => undefined },
})
