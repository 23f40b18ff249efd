import type { Fault } from '../domain/fault.ts'
import type { PayoutKey } from '../domain/identifiers.ts'
import type { Payout } from '../domain/payout/payout.ts'
import { isEnd } from '../domain/payout/states.ts'
import {
  addPublished,
  nothingPublished,
  type Published,
  type PublishedMessage,
} from '../domain/recovery/published-story.ts'
import { type StoryReadBack, standsAt } from '../domain/recovery/read-back.ts'
import { json } from '../messages/json.ts'
import { messagesAbout } from '../messages/messages.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { named, utrsOfTwo } from './evidence/utr-of-two.ts'
import {
  keyOf,
  type Ledger,
  storeDecisions,
  storeOutbox,
  storePayouts,
  storeSaidOtherwise,
} from './ledger.ts'
import { READ_BACK } from './read-back.ts'
import {
  keepHeldBefore,
  keepPaidAt,
  keepPublished,
  recordAttempts,
  takePublished,
  takeUntold,
} from './sql/kafka/published-messages.ts'
import { insertHistory } from './sql/store.ts'

/** Keeps the published messages about payouts that the ledger lacks, in the order in which they were published. */
export async function storePublished(
  tx: Transaction,
  messages: readonly (PayoutKey & PublishedMessage)[],
): Promise<void> {
  await tx.run(keepPublished, { messages })
}

/**
 * Returns and deletes the kept messages about these payouts, by `keyOf`. The result lacks payouts without any. `lacked`: leaves
 * out payouts that the ledger has, because their messages are for the recovery that reads them back.
 */
export async function takeStories(
  tx: Transaction,
  keys: readonly PayoutKey[],
  { lacked }: { lacked: boolean },
): Promise<Map<string, Published>> {
  const messages = await tx.run(takePublished, { payouts: keys, lacked })
  const stories = new Map<string, Published>()
  for (const message of messages.sort((a, b) => a.at - b.at || a.version - b.version)) {
    const story = stories.get(keyOf(message)) ?? nothingPublished()
    addPublished(story, message)
    stories.set(keyOf(message), story)
  }
  return stories
}

/** A locked payout, and what was read back about it. `isResultDue`: publish the result of its end if it never was. */
type ReadBack = {
  before: Payout
  recalled: StoryReadBack
  faults: Fault[]
  isResultDue: boolean
}

/**
 * Stores what was read back about payouts: their history, attempts and ends, with the published times. Publishes nothing twice;
 * if an end was published only as an event or only as a result, publishes the other one. Returns the payouts as they are now.
 */
export async function storeRecalled(
  tx: Transaction,
  ledger: Ledger,
  all: readonly ReadBack[],
): Promise<Payout[]> {
  const lost = all.flatMap(({ before, recalled }) => recalled.lost.map((each) => ({ ...each, before })))
  await tx.run(insertHistory, {
    history: lost.map((each) => ({ ...historyRow(each), exchange: json(READ_BACK) })),
  })
  await recordPassed(tx, all)
  await storePayouts(
    tx,
    all.map(({ recalled }) => recalled.after),
  )
  await tx.run(recordAttempts, {
    lost: all.flatMap(({ before, recalled: { after, submitted } }) =>
      Array.from({ length: after.attempt - before.attempt }, (_, i) => ({
        ...before,
        ...{ attempt: before.attempt + 1 + i, claimedAt: submitted[i] ?? null },
      })),
    ),
  })
  const ended = all.flatMap((each) => {
    const { end, after } = each.recalled
    return end && isEnd(after.state) ? [{ ...each, end }] : []
  })
  const paid = ended.filter(({ end }) => end.status === 'paid')
  await tx.run(keepPaidAt, { paid: paid.map(({ before, end }) => ({ ...before, at: end.at })) })
  const held = all.flatMap(({ before, recalled }) => (recalled.held ? [{ ...before, ...recalled.held }] : []))
  await tx.run(keepHeldBefore, { held })
  const { topics, encode } = ledger
  await storeOutbox(
    tx,
    ended.flatMap(({ recalled, end, faults, isResultDue }) => {
      const { after, lost } = recalled
      const { evidence: source, at, asEvent, asResult } = end
      const from = lost.at(-1)?.fromState ?? null
      const isDue = isResultDue && isEnd(standsAt(recalled).state)
      return messagesAbout({ payout: after, from, source, faults, at }, topics, encode).filter(({ topic }) =>
        topic === topics.events ? !asEvent : isDue && !asResult,
      )
    }),
  )
  const doubts = all.flatMap(({ recalled }) => recalled.doubts)
  const changes = all.map(({ before, recalled: { after } }) => ({
    ...{ before, after, source: 'OPERATOR' as const, exchange: null },
  }))
  const withUtr = named(changes, ({ payoutId, orderNo }) => ({ id: payoutId, orderNo }))
  const ofTwo = (await utrsOfTwo(tx, 'payout', withUtr)).map((anomaly) => ({ anomaly }))
  await storeDecisions(tx, ledger, [...doubts, ...ofTwo])
  // The anomalies may have been read back before.
  await storeSaidOtherwise(
    tx,
    ended.map(({ before }) => before),
  )
  return all.map(({ recalled }) => standsAt(recalled))
}

/** Keeps transitions whose version the ledger has since used for another one, as entries that moved nothing. */
async function recordPassed(tx: Transaction, all: readonly ReadBack[]): Promise<void> {
  const passed = all.flatMap(({ before, recalled }) => recalled.passed.map((each) => ({ ...each, before })))
  if (passed.length === 0) return
  await tx.run(insertHistory, {
    history: passed.map((each) => {
      const exchange = json({ ...READ_BACK, publishedVersion: each.version })
      return { ...historyRow(each), version: null, exchange }
    }),
  })
}

const historyRow = ({
  before,
  evidence: source,
  at: publishedAt,
  ...lost
}: StoryReadBack['lost'][number] & { before: Payout }) => ({
  ...{ merchantId: before.merchantId, payoutId: before.payoutId, source, publishedAt },
  ...lost,
})

/**
 * Publishes the missing result of an end that was published, with what is now known about the locked payout: once, whichever
 * caller comes first. `faults`: see `Transition`.
 */
export async function tellLostResult(
  tx: Transaction,
  payout: Payout,
  faults: Fault[],
  { topics, encode }: Ledger,
): Promise<void> {
  const { merchantId, payoutId } = payout
  const unpublished = await tx.run(takeUntold, { merchantId, payoutId })
  await storeOutbox(
    tx,
    unpublished.flatMap(({ source, endedAt }) =>
      messagesAbout({ payout, from: null, source, faults, at: endedAt ?? tx.now }, topics, encode).filter(
        ({ topic }) => topic === topics.results,
      ),
    ),
  )
}
