import { scrub } from '../domain/mask.ts'

/** A cell of which nobody can say what it is, safe to show: without a digit of any script, a VPA or an e-mail. */
export const hideDigits = (text: string): string => scrub(text).replace(/\p{Nd}/gu, '•')
