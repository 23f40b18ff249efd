import { scrub } from '../../domain/mask.ts'

/** Makes a cell of unknown kind safe to show: removes digits of any script, VPAs and e-mail addresses. */
export const hideDigits = (text: string): string => scrub(text).replace(/\p{Nd}/gu, '•')
