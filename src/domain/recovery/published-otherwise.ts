import { withOrderBesides } from '../payout/order-shown.ts'
import type { Anomaly, Decision, Payout } from '../payout/payout.ts'
import { areTwoPayments, isOfPayment, type OrderNames } from '../payout/several-orders.ts'
import { isEnd, type State } from '../payout/states.ts'
import { anomaly, change } from '../payout/transition.ts'
import {
  isOfAttempt,
  type OwnStory,
  type OwnTransition,
  type Published,
  type PublishedEnd,
  type PublishedTransition,
  showsOrder,
  storiesOf,
} from './published-story.ts'

/** Why a payout is in review: an end was published that differs from the ledger's. */
export const END_PUBLISHED = 'end-published'

/** How the detail of an anomaly about a published end begins. */
export const publishedAs = ({
  status,
  version,
  evidence,
}: Pick<PublishedEnd, 'version' | 'evidence'> & { status: State }): string =>
  `it was published as ${status} (version ${version}, by ${evidence})`

/**
 * What published ends do to a payout that has come to another one since the ledger was set back: all have been told, and
 * which of them is true a person finds out. Where one says paid and the other not, the payout is in
 * review under a version above all that were published (`highest`), so that what the person decides is the last that is
 * told. The published payment's fee and number are known then, and no other order's. What the gateway said to either end is not news then:
 * nothing but "paid" settles it besides.
 */
export function otherEnds(payout: Payout, ends: readonly PublishedEnd[], highest: number): Decision[] {
  const others = ends.filter((end) => isOther(payout, end))
  const weighed = others.find((end) => isToWeigh(payout, end))
  return others.map((end) => {
    const report = otherEndReported(payout, end)
    if (end !== weighed) return { anomaly: report }
    const after = {
      ...unsettled(payout, Math.max(end.version, highest)),
      ...(end.status === 'paid' && ofPublished(end)),
    }
    return { anomaly: report, ...change(payout, after, 'OPERATOR', { note: report.detail }) }
  })
}

/**
 * What is known of the order of a payment that was published and that the ledger lost. No message says which account paid, and its
 * UTR waits for the person who confirms it.
 */
export const ofPublished = ({ agentpayOrderId, fee }: PublishedEnd) => ({
  ...{ agentpayOrderId, fee, utr: null, accountId: null },
})

/** A payment is another end if it has another UTR or order, or nothing names it as the same. */
const isOther = (payout: Payout, end: PublishedEnd): boolean =>
  end.status !== payout.state ||
  (payout.state === 'paid' && (areTwoPayments(payout, end) || !isOfPayment(payout, end)))

/** A rejected payout has no order, so it can have no other outcome. A payment that was published last stands. */
const isToWeigh = ({ state, version, orderNo }: Payout, end: PublishedEnd): boolean =>
  (end.status === 'paid') !== (state === 'paid') &&
  orderNo !== null &&
  !(state === 'paid' && version > end.version)

export function otherEndReported(payout: Payout, end: PublishedEnd): Anomaly {
  // Without a UTR, only the orders show that there were two payments.
  const named = (one: OrderNames) =>
    `${areTwoPayments(payout, end) && one.utr === null ? `, order ${one.agentpayOrderId}` : ''}${withUtr(one.utr)}`
  const detail = `${publishedAs(end)}${named(end)}, which the ledger lost: it has ${payout.state} (version ${payout.version})${named(payout)}`
  return anomaly(payout, 'OPERATOR', END_PUBLISHED, detail, null).anomaly
}

/**
 * What to do with a payout that has ended, and that was published as sent, or as queued to be sent. Its lost attempts are counted
 * already. `unknown`: the transitions that its own story lacks; only those after the last end of each ledger count. The ledger
 * lost that, perhaps with an attempt, so the one who ended it unpaid did not know. Null: it was not, or the lost part is only about
 * an attempt that the ledger has and does not show an order that the end denies.
 */
export function sentSince(
  payout: Payout,
  unknown: readonly PublishedTransition[],
  { highest }: Pick<Published, 'highest'>,
  own: Pick<OwnStory, 'transitions'>,
): Decision | null {
  const since = storiesOf(unknown, own).flatMap((story) =>
    story.slice(story.findLastIndex(({ toState }) => isEnd(toState)) + 1),
  )
  const last = since.findLast((each) => each.toState === 'queued' || isOfAttempt(each))
  if (!last) return null
  const isKnown = isOfKnownAttempt(since, own)
  if (payout.state === 'paid') return isKnown || !since.some(isOfAttempt) ? null : sentBesides(payout, last)
  const wasReported = payout.state === 'failed' && !payout.unreported
  if (isKnown && (wasReported || !since.some(showsOrder))) return null
  const detail = sentInWords(payout, last)
  const report = anomaly(payout, 'OPERATOR', END_PUBLISHED, detail, null)
  if (payout.orderNo === null) return report
  // The lost attempt, if there was one, may be at any account.
  const lost = !isKnown && { accountId: null, turnedAway: true, agentpayOrderId: null }
  return {
    ...report,
    ...change(payout, { ...unsettled(payout, highest), ...lost }, 'OPERATOR', { note: detail }),
  }
}

/** A payment stands, and what became of the lost attempt a person finds out. */
const sentBesides = (payout: Payout, last: PublishedTransition): Decision =>
  anomaly(payout, 'OPERATOR', END_PUBLISHED, sentInWords(payout, last), null)

const sentInWords = ({ state, version }: Payout, last: PublishedTransition): string =>
  `${publishedAs({ ...last, status: last.toState })}, which the ledger lost: it has ${state} (version ${version})`

/** The lost part contains no new attempt and continues from a transition that the ledger had made by then. */
function isOfKnownAttempt(
  since: readonly PublishedTransition[],
  { transitions }: Pick<OwnStory, 'transitions'>,
): boolean {
  const [first] = since
  const goesOnFrom = ({ version, toState, at }: OwnTransition): boolean =>
    version === (first?.version ?? 0) - 1 && toState === first?.fromState && at <= first.at
  const hasAttempt = since.some(({ toState }) => toState === 'queued' || toState === 'submitting')
  return !hasAttempt && transitions.some(goesOnFrom)
}

/** In review for a person, under a version above all published ones. The order that was published may be another one. */
const unsettled = (payout: Payout, highest: number): Payout => ({
  ...withOrderBesides(payout),
  ...{ state: 'review', reason: END_PUBLISHED, version: Math.max(payout.version, highest) + 1 },
  ...{ unreported: false, saidOtherwise: null, utr: null, attempt: Math.max(1, payout.attempt) },
})

export const withUtr = (utr: string | null): string => (utr === null ? '' : `, UTR ${utr}`)
