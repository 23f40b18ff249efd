import type { OtherPayment, OtherPayments } from '../queries/other-payments.ts'
import { inFull } from './list-text.ts'

export const CAME_BACK = ', and the money came back'

/** So many are named; those that were paid or sent come first. */
const NAMED = 3

/** What else pays the same, as a clause. `isOfThisToo`: whether the act that is described pays this one as well. */
export function otherPaymentsText(
  others: OtherPayments,
  isOfThisToo: (payoutId: string) => boolean = () => false,
): string {
  const pay = others.found.length === 1 && !others.thereMayBeMore ? 'pays' : 'pay'
  return `${theseText(others, isOfThisToo)} ${pay} the same amount to the same beneficiary`
}

/** Why an act with --yes did not pay a payout beside these. */
export const unseenText = (others: OtherPayments): string =>
  `${otherPaymentsText(others)}, and with --yes nobody is asked about that: ${
    others.thereMayBeMore
      ? 'leave out --yes and look, because you cannot name those with --besides that payoutd did not look at'
      : 'name those that you know of with --besides, or leave out --yes'
  }`

/** The first of these payouts, and how many more there are. */
export function theseText(
  { found, thereMayBeMore }: OtherPayments,
  isOfThisToo: (payoutId: string) => boolean = () => false,
): string {
  const named = found.slice(0, NAMED).map((each) => nameOf(each, isOfThisToo(each.payoutId)))
  const rest = found.length - named.length
  const parts = [
    ...named,
    ...(rest > 0 ? [`${rest} more`] : []),
    ...(thereMayBeMore
      ? [`perhaps ${found.length === 0 ? 'some of the many payouts' : 'others'} that payoutd did not look at`]
      : []),
  ]
  const last = parts.pop() ?? ''
  return parts.length === 0 ? last : `${parts.join(', ')} and ${last}`
}

function nameOf(
  { payoutId, batchId, state, reason, mayBePaid, cameBack, toOtherDetails }: OtherPayment,
  isOfThisToo: boolean,
): string {
  const batch = batchId === null ? '' : ` of batch ${batchId}`
  const details = toOtherDetails ? ', to other bank details' : ''
  const more = isOfThisToo
    ? ', and released by this command too'
    : mayBePaid
      ? `, yet the gateway has said otherwise, see payoutd payout show ${payoutId}`
      : ''
  const back = cameBack ? CAME_BACK : ''
  return `payout ${payoutId}${batch} (${inFull(state, reason)}${back}${details}${more})`
}
