import { whileFenced } from './fenced.ts'
import { recordApply } from './record-apply.ts'
import { recordAbsence, recordNoAnswer } from './record-query.ts'
import { settle } from './settle.ts'
import { whenDue } from './when-due.ts'

/** The decisions that evidence and time bring about, as the stages ask for them. */
export const JUDGEMENT = { recordApply, settle, recordAbsence, recordNoAnswer, whenDue, whileFenced }

export type Judgement = typeof JUDGEMENT
