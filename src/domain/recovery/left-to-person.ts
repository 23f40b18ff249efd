import { awaitsRelease, isHoldReason } from '../commands/holds.ts'
import { awaitsRefusal } from '../commands/refused.ts'
import type { Payout } from '../payout/payout.ts'
import { isOtherwise, isSame, type Published, type PublishedTransition } from './published-story.ts'

/**
 * The latest published review, or else hold until a release, that a payout's own story lacks, and that no release or resend was
 * published to follow. The person may have paid it in another way since. `lacked`: all published transitions that its own story
 * lacks, none of them an end. Null: there is none, or only a person sends this payout anyway.
 *
 * When intake reads a command again, it compares it with the ledger as it is by then, whatever the order of the partitions, in
 * today's pay period, and before anybody knows what was paid. None of that shows that a person need not look.
 */
export function leftToPerson(
  payout: Payout,
  { transitions }: Published,
  lacked: readonly PublishedTransition[],
): PublishedTransition | null {
  if (payout.state === 'processing' || payout.state === 'review' || awaitsRefusal(payout)) return null
  const ordered = transitions
    .filter((each) => isOtherwise(payout, each) || lacked.some((one) => isSame(one, each)))
    .sort((a, b) => a.at - b.at || a.version - b.version)
  const left = ordered.filter(
    (each, place) => isForPerson(each) && !isDecided(each, ordered.slice(place + 1)),
  )
  return left.findLast(isReview) ?? (awaitsRelease(payout) ? null : (left.at(-1) ?? null))
}

const isReview = ({ toState }: PublishedTransition): boolean => toState === 'review'

const isForPerson = (transition: PublishedTransition): boolean =>
  isReview(transition) || (transition.toState === 'held' && isHoldReason(transition.reason))

/**
 * A person led out of it, or was asked the same again later, as a recovery does. If the next of these versions does not go on
 * from it, the ledger was set back in between, and what follows is another story.
 */
function isDecided(
  { version, toState, reason }: PublishedTransition,
  later: readonly PublishedTransition[],
): boolean {
  const next = later.find((each) => each.version <= version + 1)
  return (
    later.some((each) => isForPerson(each) && each.reason === reason) ||
    (next?.version === version + 1 && next.fromState === toState && next.evidence === 'OPERATOR')
  )
}
