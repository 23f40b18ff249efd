import { recordApply } from "./record-apply.js";
import { recordAbsence, recordNoAnswer } from "./record-query.js";
import { settle } from "./settle.js";
import { whenDue } from "./when-due.js";
/** The decisions that evidence and time bring about, as the stages ask for them. */
export const JUDGEMENT = { recordApply, settle, recordAbsence, recordNoAnswer, whenDue };
