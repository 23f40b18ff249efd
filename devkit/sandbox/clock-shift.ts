import type { Signable } from './wire/sign.ts'

/** Shifts the one time that the contract has in answers and callbacks by this many milliseconds. */
export function withTimeOff<T extends Signable>(fields: T, shiftMs: number): T {
  const { paySuccTime } = fields
  if (!paySuccTime) return fields
  const off = Number(paySuccTime) + shiftMs
  return { ...fields, paySuccTime: typeof paySuccTime === 'string' ? String(off) : off }
}
