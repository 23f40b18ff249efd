import type { Instant } from './instant.ts'

/** `2026-11-21 11:35:02.512Z`: to the millisecond, UTC, as in the logs. */
export const formatTime = (at: Instant): string => new Date(at).toISOString().replace('T', ' ')

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const

/** `5 min`: the largest whole unit, to read at a glance. */
export function formatAge(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms >= length) ?? ['s', 1_000]
  return `${Math.floor(Math.max(0, ms) / length)} ${unit}`
}
