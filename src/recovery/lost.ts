import { json } from '../ledger/json.ts'
import { keyOf, type Ledger, lockPayouts, type PayoutKey } from '../ledger/ledger.ts'
import { topicKey } from '../ledger/messages.ts'
import { tellHistory } from '../ledger/sql/store.ts'
import { isEnd, type State } from '../payout/states.ts'
import type { Codec } from '../platform/kafka/codec.ts'
import type { IncomingRecord } from '../platform/kafka/records.ts'
import { keepSent, openVersions, raiseVersion, recordAttempts } from './sql/lost.ts'

export type LostDeps = {
  ledger: Ledger
  codec: Codec
  /** Reads all of a topic, one record after the other. */
  readTopic: (topic: string, onRecord: (record: IncomingRecord) => Promise<void>) => Promise<void>
}

/** A transition as schemas/PayoutEvent.avsc tells it; states in capitals. */
type Transition = PayoutKey & {
  version: number
  fromState: string | null
  toState: string
  reason: string | null
  evidence: string
}

/**
 * Gives the open payouts of fenced merchants the transitions back that the database lost and Kafka did not: what was
 * published keeps its version, so that no event id stands for two things and the highest version stays the latest. No
 * state changes, as only the gateway's word settles anything; an end is left out, for it is told again, under its own
 * event id, once the gateway confirms it. Returns how many payouts had lost something.
 */
export async function recallPublished(merchantIds: readonly string[], deps: LostDeps): Promise<number> {
  const { ledger, codec, readTopic } = deps
  const versions = new Map<string, { merchantId: string; payoutId: string; version: number }>()
  const keys = new Set<string>()
  for (const merchantId of merchantIds) {
    for await (const each of openOf(merchantId, ledger)) {
      versions.set(keyOf({ merchantId, ...each }), { merchantId, ...each })
      keys.add(topicKey(merchantId, each.payoutId))
    }
  }
  if (versions.size === 0) return 0
  // Only what was lost is held, which is little of what the topic has.
  const lost = new Map<string, Transition[]>()
  await readTopic(ledger.topics.events, async ({ key, value }) => {
    if (!value || !keys.has(String(key))) return
    const told = await decode(value, codec)
    const open = versions.get(keyOf(told))
    if (open && told.version > open.version) lost.set(keyOf(told), [...(lost.get(keyOf(told)) ?? []), told])
  })
  for (const [key, told] of lost) await recall(versions.get(key) as PayoutKey, told, ledger)
  return lost.size
}

const PAGE = 10_000

async function* openOf(merchantId: string, { db }: Ledger) {
  for (let after = ''; ; ) {
    const page = await db.run(openVersions, { merchantId, after, limit: PAGE })
    yield* page
    const last = page.at(-1)
    if (!last) return
    after = last.payoutId
  }
}

async function decode(value: Buffer, codec: Codec): Promise<Transition> {
  const decoded = await codec.decode(value)
  if (decoded.kind === 'undecodable')
    throw new Error(`payout.events holds what cannot be read: ${decoded.detail}`)
  return decoded.value as Transition
}

function recall(
  key: { merchantId: string; payoutId: string },
  told: readonly Transition[],
  ledger: Ledger,
): Promise<void> {
  return ledger.db.transaction('recall published', async (tx) => {
    const [payout] = await lockPayouts(tx, [key])
    if (!payout || isEnd(payout.state)) return
    const lost = lostSince(payout.version, told)
    const last = lost.at(-1)
    if (!last) return
    await tx.run(tellHistory, {
      merchantIds: lost.map(() => key.merchantId),
      payoutIds: lost.map(() => key.payoutId),
      versions: lost.map(({ version }) => version),
      fromStates: lost.map(({ fromState }) => fromState?.toLowerCase() ?? null),
      toStates: lost.map(({ toState }) => toState.toLowerCase()),
      reasons: lost.map(({ reason }) => reason),
      sources: lost.map(({ evidence }) => evidence),
      exchanges: lost.map(() => json({ note: 'read back from payout.events after a restore' })),
    })
    const attempts = lost.filter(({ toState }) => toState === 'SUBMITTING').length
    const attempt = payout.attempt + attempts
    await tx.run(raiseVersion, { ...key, version: last.version, attempt })
    await tx.run(recordAttempts, {
      ...key,
      orderNo: payout.orderNo,
      first: payout.attempt + 1,
      last: attempt,
    })
    if (attempts > 0 && last.toState !== 'QUEUED') await tx.run(keepSent, key)
  })
}

/** What follows a version without a gap, up to an end. */
function lostSince(version: number, told: readonly Transition[]): Transition[] {
  const byVersion = new Map(told.map((each) => [each.version, each]))
  const lost: Transition[] = []
  for (let next = byVersion.get(version + 1); next; next = byVersion.get(next.version + 1)) {
    if (isEnd(next.toState.toLowerCase() as State)) break
    lost.push(next)
  }
  return lost
}
