import assert from 'node:assert/strict'
import { DECISIONS } from '../src/domain/decisions.ts'
import type { RecoveryDeps } from '../src/operators/recovery/recovery.ts'
import { systemClock } from '../src/platform/running/clock.ts'

const now = () => assert.fail('a recovery compares times of the database, and asks for none of this machine')

/** What the questions of a recovery need besides its ledger, its accounts and its person: nothing is missing, and nobody stops it. */
export const recoveryDeps = (): Omit<RecoveryDeps, 'ledger' | 'accounts' | 'who'> => ({
  ...{ decisions: DECISIONS, missing: new Map(), ratePerSecond: 1_000, clock: { ...systemClock, now } },
  ...{ signal: new AbortController().signal, onProgress: () => undefined },
})
