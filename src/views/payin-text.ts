import { formatRupees } from '../domain/money.ts'
import type { Payin } from '../domain/payin/payin.ts'
import { formatTime } from '../domain/times.ts'
import type { PayinStory } from '../payins/story.ts'
import { anomalyLines, entryLines, section } from './story-text.ts'

/** A payin for a person to read, in lines. */
export function payinText(payin: Payin): string {
  const { merchantId, payinId, amount, state, reason, version, checkout, paidAt, dueAt } = payin
  const facts: [string, string | null][] = [
    ['requested', formatRupees(amount)],
    ['created', formatTime(payin.createdAt)],
    ['state', `${state}${reason === null ? '' : ` (${reason})`}, version ${version}`],
    ['expires', state === 'open' ? formatTime(payin.expiresAt) : null],
    ['next look', dueAt === null ? null : formatTime(dueAt)],
    ['payOrderId', payin.payOrderId],
    ['UTR', payin.utr],
    ['paid', paidAt === null ? null : formatTime(paidAt)],
    ...(state === 'open' ? Object.entries(checkout ?? {}) : []),
  ]
  return [
    `payin ${payinId} of ${merchantId}`,
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(16)}${value}`])),
  ].join('\n')
}

/** The same, with its whole history. */
export const payinStoryText = (story: PayinStory): string =>
  [
    payinText(story),
    ...section('history', story.history, entryLines),
    ...section('anomalies', story.anomalies, anomalyLines),
  ].join('\n')

/** The same, for a payin that waits for a person. */
export const payinReviewText = (story: PayinStory): string =>
  `${payinStoryText(story)}\n  decide with: payoutd payin resolve ${story.payinId} --paid --utr <UTR>, or --failed`
