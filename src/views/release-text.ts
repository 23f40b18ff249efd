import { formatRupees, sum } from '../domain/money.ts'
import { formatTime } from '../domain/times.ts'
import { isReleased, type ReleaseOutcome } from '../operators/release-payouts.ts'
import { areThere } from '../queries/other-payments.ts'
import { eachText } from './each-text.ts'
import { holdText } from './hold-text.ts'
import { inFull } from './list-text.ts'
import { otherPaymentsText, unseenText } from './other-payments-text.ts'

type Released = Extract<ReleaseOutcome, { kind: 'queued' | 'scheduled' }>

/**
 * A line for each payout, the first ones in full and with the request if `askedFor` has it, and their total. `be` is `is` after
 * the act, `would be` before.
 */
export function releaseText(
  outcomes: readonly ReleaseOutcome[],
  be: 'is' | 'would be',
  askedFor: ReadonlyMap<string, string> = new Map(),
): string {
  const are = be === 'is' ? 'are' : be
  const released = outcomes.filter(isReleased)
  const releasedIds = new Set(released.map(({ payoutId }) => payoutId))
  const lines = eachText(
    outcomes,
    (outcome) => {
      const asked = askedFor.get(outcome.payoutId)
      return inWords(outcome, be, releasedIds) + (asked === undefined ? '' : `\n  ${asked}`)
    },
    (rest) => {
      const more = rest.filter(isReleased)
      const beside = more.filter(({ otherPayments }) => areThere(otherPayments)).length
      const besides =
        beside > 0
          ? `, of which ${beside} although another payout pays the same or may (--json names each)`
          : ''
      return `and ${more.length} more ${are} released${besides}; ${rest.length - more.length} more stay as they are`
    },
  )
  if (released.length < 2) return lines
  const together = formatRupees(sum(released.map(({ amount }) => amount)))
  return `${lines}\n${released.length} payouts, ${together} together, ${are} released`
}

function inWords(outcome: ReleaseOutcome, be: 'is' | 'would be', released: ReadonlySet<string>): string {
  switch (outcome.kind) {
    case 'queued':
      return `${be} queued; ${wasHeld(outcome, released)}`
    case 'scheduled':
      return `${be} released, and waits until ${formatTime(outcome.paysAt)}; ${wasHeld(outcome, released)}`
    case 'unseen':
      return `stays held: ${unseenText(outcome.otherPayments)}`
    case 'to-be-cancelled':
      return `stays held, because somebody asked to cancel it (${outcome.request}): payoutd recover cancels it unless the gateway has it`
    case 'expired':
      return (
        `stays held: its deadline passed at ${formatTime(outcome.deadline)}, ` +
        AFTER_DEADLINE[outcome.mayBeSent ?? 'never-sent']
      )
    case 'not-waiting': {
      const { state, reason, released } = outcome
      const why = released
        ? `it was released at ${formatTime(released.at)}, by ${released.note}`
        : 'it is not held for a release'
      return `stays ${inFull(state, reason)}: ${why}`
    }
    case 'moved':
      return 'stays held: the payments that it is compared with, the time when it may be sent, or the evidence about it changed after you saw it; look at it again'
    case 'unknown':
      return 'is no longer in the ledger'
  }
}

function wasHeld({ holds, otherPayments }: Released, released: ReadonlySet<string>): string {
  const why = `it was held because ${holds.map(holdText).join(', and because ')}`
  return areThere(otherPayments)
    ? `${why}; by now ${otherPaymentsText(otherPayments, (payoutId) => released.has(payoutId))}`
    : why
}

const AFTER_DEADLINE = {
  fenced:
    'and it may have been sent, because the ledger was restored: do not pay it under another payoutId before payoutd recover has ended',
  'in-doubt':
    'and it may have been sent from a ledger that was lost: it goes to review, and you must not pay it under another payoutId ' +
    'before a person has decided about it',
  'never-sent': 'so it is cancelled; pay it under a new payoutId',
}
