import { recordApply } from './payout/record-apply.ts'
import { recordAbsence, recordNoAnswer } from './payout/record-query.ts'
import { settle } from './payout/settle.ts'
import { whenDue } from './payout/when-due.ts'
import { whileFenced } from './restore/fenced.ts'

/** The decisions that evidence and time bring about, as the stages ask for them. */
export const JUDGEMENT = { recordApply, settle, recordAbsence, recordNoAnswer, whenDue, whileFenced }

export type Judgement = typeof JUDGEMENT
