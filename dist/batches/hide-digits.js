import { scrub } from "../payout/mask.js";
/** A cell of which nobody can say what it is, safe to show: without a digit of any script, a VPA or an e-mail. */
export const hideDigits = (text) => scrub(text).replace(/\p{Nd}/gu, '•');
