import { applyEvidence } from './payout/apply-evidence.ts'
import { onTimer } from './payout/on-timer.ts'
import { recordApply } from './payout/record-apply-answer.ts'
import { recordAbsence, recordNoAnswer } from './payout/record-query-answer.ts'
import { whileFenced } from './payout/while-fenced.ts'

/** The decisions that evidence and time cause, as the stages call them. */
export const DECISIONS = {
  recordApply,
  applyEvidence,
  recordAbsence,
  recordNoAnswer,
  onTimer,
  whileFenced,
}

export type Decisions = typeof DECISIONS
