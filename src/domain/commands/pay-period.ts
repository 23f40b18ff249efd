import type { Instant } from '../instant.ts'

/** How often a merchant pays the same beneficiary the same amount, at most. */
export const PAY_PERIODS = ['day', 'week', 'month'] as const

export type PayPeriod = (typeof PAY_PERIODS)[number]

/** Asia/Kolkata, which has no daylight saving time. */
const INDIA_MS = 5.5 * 3_600_000
const DAY_MS = 86_400_000

/** The calendar day, week (from Monday) or month in India that contains `at`. `to` is exclusive. */
export function payPeriodAt(at: Instant, period: PayPeriod): { from: Instant; to: Instant } {
  const day = Math.floor((at + INDIA_MS) / DAY_MS) * DAY_MS
  const date = new Date(day)
  const month = (ahead: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + ahead)
  const monday = day - ((date.getUTCDay() + 6) % 7) * DAY_MS
  switch (period) {
    case 'day':
      return { from: day - INDIA_MS, to: day + DAY_MS - INDIA_MS }
    case 'week':
      return { from: monday - INDIA_MS, to: monday + 7 * DAY_MS - INDIA_MS }
    case 'month':
      return { from: month(0) - INDIA_MS, to: month(1) - INDIA_MS }
  }
}
