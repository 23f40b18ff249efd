import type { EvidenceSource } from '../../domain/evidence.ts'
import type { PayoutKey } from '../../domain/identifiers.ts'
import { paise } from '../../domain/money.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { isEnd, type State } from '../../domain/payout/states.ts'
import {
  addPublished,
  isOtherwise,
  nothingPublished,
  type Published,
  type PublishedMessage,
  transitionIn,
} from '../../domain/recovery/published-story.ts'
import { readBackLate, readBackStory, standsAt } from '../../domain/recovery/read-back.ts'
import { keyOf, type Ledger, lockPayouts } from '../../ledger/ledger.ts'
import { storeRecalled, takeStories } from '../../ledger/published-messages.ts'
import { recalling } from '../../ledger/read-back.ts'
import { topicKey } from '../../messages/messages.ts'
import type { TopicRecord } from '../../platform/kafka/records.ts'
import { type Codec, demandReadable } from '../../platform/registry/codec.ts'
import { eachPayout } from '../each-payout.ts'
import { ownStory, Passed, passedBy } from './lacking-transitions.ts'
import { OtherEnds, settleOtherEnd } from './published-otherwise.ts'
import { faultsOfRejected } from './rejected-faults.ts'
import { keepRecalled, openVersions } from './sql/read-back-published.ts'
import { noteLossFound } from './sql/server-identity.ts'
import { UnlistedPayouts } from './unlisted-payouts.ts'

export type ReadBackDeps = {
  ledger: Ledger
  codec: Codec
  /** Reads a whole topic, one record after another. */
  readTopic: (topic: string, onRecord: (record: TopicRecord) => Promise<void>) => Promise<void>
}

/** A record of schemas/PayoutEvent.avsc, PayoutResult.avsc or PayoutReversed.avsc; states in capitals. */
type PublishedRecord = PayoutKey & {
  version: number
  evidence: EvidenceSource
  mchOrderNo: string | null
  amount: bigint
  currency: string
  occurredAt: number
}
type Event = PublishedRecord & { fromState: string | null; toState: string; reason: string | null }
type PublishedResult = PublishedRecord & {
  status: string
  agentpayOrderId: string | null
  fee: bigint | null
  utr: string | null
  errors: { message: string }[]
  /** Of a PayoutReversed. */
  paidAt: number | null
}

/**
 * One open payout: where the ledger stands, and what was published of it. `isPassed`: some of that has versions that the ledger
 * has since used otherwise.
 */
type Open = PayoutKey &
  Pick<Payout, 'state' | 'version' | 'attempt'> & { published: Published; isPassed: boolean }

/**
 * Gives the open payouts of fenced merchants back the transitions that the database lost and Kafka kept (see `readBackStory`), so
 * that no event id stands for two things. It publishes no end twice: an end that is in no topic as an event is published as one,
 * and an end that is in no topic as a result is published once the gateway was asked. It compares payouts that have ended with
 * their published ends, and keeps for intake what was published of payouts that the ledger lacks. Returns how many payouts had
 * lost something.
 */
export async function readBackPublished(merchantIds: readonly string[], deps: ReadBackDeps): Promise<number> {
  const { ledger, codec, readTopic } = deps
  const open = new Map<string, Open>()
  const others = new OtherEnds(ledger)
  const unlisted = new UnlistedPayouts(ledger)
  const prefixes = merchantIds.map((merchantId) => topicKey(merchantId, ''))
  for (const merchantId of merchantIds) {
    for await (const each of openOf(merchantId, ledger))
      open.set(keyOf({ merchantId, ...each }), {
        ...{ merchantId, ...each },
        ...{ published: nothingPublished(), isPassed: false },
      })
  }
  const passed = new Passed(ledger, (key, transition) => {
    const payout = open.get(keyOf(key)) as Open
    payout.isPassed = true
    if (transition.version < payout.version) payout.published.transitions.push(transition)
  })
  // Read results first: with few exceptions each end is a result, and then the versions show what else the events add.
  for (const topic of [ledger.topics.results, ledger.topics.events]) {
    await readTopic(topic, async (record) => {
      const { key, value } = record
      if (!value || !prefixes.some((prefix) => String(key).startsWith(prefix))) return
      const decoded = demandReadable(await codec.decode(value), topic, record)
      const { merchantId, payoutId } = decoded.value as PublishedRecord
      if (!merchantIds.includes(merchantId)) return
      const message = messageIn(decoded)
      const payout = open.get(keyOf({ merchantId, payoutId }))
      if (payout) {
        addPublished(payout.published, message, payout.version)
        if (message.isResult || message.version > payout.version) return
        return passed.note({ merchantId, payoutId, transition: transitionIn(message) })
      }
      await others.note({ merchantId, payoutId }, message)
      await unlisted.note({ merchantId, payoutId, ...message })
    })
  }
  await passed.compare()
  const lost = [...open.values()].filter(hasLost)
  for (const { published, ...key } of lost) await recallOne(key, published, ledger)
  for (const key of await unlisted.late()) await recallOne(key, null, ledger)
  for (const { published, ...key } of await others.differing()) await recallOne(key, published, ledger)
  return lost.length
}

const PAGE = 10_000

const openOf = (merchantId: string, { db }: Ledger) =>
  eachPayout((after) => db.run(openVersions, { merchantId, after, limit: PAGE }))

export function messageIn({ name, value }: { name: string; value: unknown }): PublishedMessage {
  const { version, evidence, mchOrderNo, amount, currency, occurredAt } = value as PublishedRecord
  const common = {
    ...{ version, evidence, orderNo: mchOrderNo, amount: paise(amount), currency, at: occurredAt },
    isResult: name !== 'in.payoutd.PayoutEvent',
  }
  if (!common.isResult) {
    const { fromState, toState, reason } = value as Event
    const states = { fromState: fromState === null ? null : stateIn(fromState), state: stateIn(toState) }
    return { ...common, ...states, reason, agentpayOrderId: null, fee: null, utr: null }
  }
  // A returned payout was paid, and a PayoutReversed has neither a status nor a fee.
  const {
    status = 'PAID',
    agentpayOrderId,
    fee = null,
    utr,
    errors = [],
    paidAt,
  } = value as Partial<PublishedResult>
  const details = { agentpayOrderId: agentpayOrderId ?? null, utr: utr ?? null }
  const reason = errors[0]?.message ?? null
  return {
    ...{ ...common, ...details, fromState: null, state: stateIn(status), reason, at: paidAt ?? common.at },
    fee: fee === null ? null : paise(fee),
  }
}

const stateIn = (name: string): State => name.toLowerCase() as State

const hasLost = ({ published, isPassed, ...payout }: Open): boolean =>
  isPassed ||
  published.ends.length > 0 ||
  published.submitted.size > payout.attempt ||
  published.transitions.some((each) => each.version > payout.version || isOtherwise(payout, each))

/**
 * `published`: null for a payout that intake stored after the list was made. Nobody asks the gateway about it, and all of its
 * history was kept.
 */
function recallOne(key: PayoutKey, published: Published | null, ledger: Ledger): Promise<void> {
  const { merchantId, payoutId } = key
  return recalling(ledger.db, async (tx) => {
    const isLate = published === null
    const story = published ?? (await takeStories(tx, [key], { lacked: false })).get(keyOf(key))
    const [before] = await lockPayouts(tx, [key])
    if (!before || !story) return
    if (isEnd(before.state)) {
      await settleOtherEnd(tx, before, story, ledger)
      return
    }
    const passed = await passedBy(tx, before, story)
    if (isLate && passed.length === 0 && story.highest <= before.version) return
    const own = await ownStory(tx, before, story, passed)
    const recalled = (isLate ? readBackLate : readBackStory)(before, story, passed, own)
    const { lost, end, doubts } = recalled
    const isLoss = lost.length + recalled.passed.length + doubts.length > 0
    if (!isLate && isLoss) await tx.run(noteLossFound, {})
    const faults = await faultsOfRejected(tx, recalled.after)
    await storeRecalled(tx, ledger, [{ before, recalled, faults, isResultDue: isLate }])
    const untold = end && isEnd(standsAt(recalled).state) && !end.asResult ? end : null
    await tx.run(keepRecalled, {
      ...{ merchantId, payoutId, sent: recalled.sent },
      ...{ untold: untold?.evidence ?? null, untoldAt: untold?.at ?? null },
    })
  })
}
