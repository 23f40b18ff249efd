import { WHO } from '../../../../test/lost-ledger.ts'
import { CURRENT, FORMER } from '../../../../test/two-accounts.ts'
import type { ApplyAnswer } from '../../../domain/gateway-answers.ts'
import type { Payout } from '../../../domain/payout/payout.ts'
import type { Resolution } from '../../../domain/payout/resolve.ts'
import type { State } from '../../../domain/payout/states.ts'
import { become } from '../../../domain/payout/transition.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import { applyEvidenceBatch } from '../../../stages/outcomes/outcomes.ts'
import { decided } from '../../operations.fixture.ts'
import { resolvePayout } from '../../resolve-payout.ts'
import { acceptedAs, exchange, LATER, NOT_SENT, REFUSED, TIMEOUT } from '../set-back.fixture.ts'
import { reportOn, type StoryOrder, utrOf } from './gateway.fixture.ts'
import { KEY, type SetBackStory } from './story.fixture.ts'

/** `move`: which of those that the state allows; `how`: about which order, or in which manner. */
export type Choice = { move: number; how: number }

/** Returns what happened in words; null: nothing can. */
type Move = (story: SetBackStory, how: number, payout: Payout) => Promise<string | null>

const pick = <Each>(each: readonly Each[], choice: number): Each | undefined => each[choice % each.length]

/** One thing that may happen to `p` now, if anything. */
export async function takeStep(story: SetBackStory, { move, how }: Choice): Promise<void> {
  if (story.isSilent) return
  const payout = await story.payout()
  if (!payout) {
    await story.read()
    return story.note('its command is read late')
  }
  const moves = [...(NEXT[payout.state] ?? []), report]
  const what = await pick(moves, move)?.(story, how, payout)
  if (what) await story.note(what)
}

const send: Move = (story) => story.send()

const cancel: Move = async ({ lost }) => {
  await lost.cancel()
  return 'a person asks to cancel it'
}

/** What only the ledgers that are to be lost do: it is no step towards a payment. */
const moveTo =
  (state: State, reason: string, source: 'CLOCK' | 'OPERATOR'): Move =>
  async ({ lost, isRecovered }) => {
    if (isRecovered && source === 'CLOCK') return null
    await decided(lost.ledger, 'p', (before) => ({
      change: { before, after: become(before, state, { reason }), source, exchange },
    }))
    return `it becomes ${state} (${reason})`
  }

/** The gateway gives its answer to the latest attempt, unless that answer was lost with a ledger. */
const answers =
  (what: string, answer: (story: SetBackStory) => ApplyAnswer | null): Move =>
  async (story) => {
    const attempt = String(await story.lost.sentAt())
    const said = story.answered.has(attempt) ? TIMEOUT : answer(story)
    story.answered.add(attempt)
    story.isSilent = said === null
    if (said) await story.lost.say(said, story.queryPolicy)
    return said && said !== TIMEOUT ? `${what}: ${said.kind}` : said ? 'no answer comes in time' : what
  }

const accepts = ({ gateway, account }: SetBackStory): ApplyAnswer => {
  const order = gateway.accept(account)
  return order ? acceptedAs(order.id) : { kind: 'duplicate', code: 'DUPLICATE', exchange }
}
const acceptsInSilence =
  (answer: ApplyAnswer | null) =>
  ({ gateway, account }: SetBackStory) => {
    gateway.accept(account)
    return answer
  }

const hear = (story: SetBackStory, order: StoryOrder) => {
  const { status, utr } = reportOn(order)
  return story.lost.callBack({ agentpayOrderId: order.id, status, utr }, order.account)
}

const reports =
  (status: StoryOrder['status'], isHeard: boolean): Move =>
  async (story, how) => {
    const order = pick(story.gateway.with('processing'), how)
    if (!order) return null
    order.status = status
    order.isUnheard = !isHeard && story.isRecovered
    if (isHeard) await hear(story, order)
    return `the gateway reports ${order.id}: ${status}${isHeard ? '' : ', and that callback is lost'}`
  }

const returns: Move = async (story) => {
  const order = story.gateway.with('success').at(-1)
  if (!order) return null
  Object.assign(order, { status: 'failed', isReturned: true })
  await hear(story, order)
  return `the payment of ${order.id} is returned; a person reverses it: ${await story.lost.reverse()}`
}

const REPORTS: readonly Move[] = [
  reports('processing', true),
  reports('success', true),
  reports('failed', true),
  reports('success', false),
  reports('failed', false),
  returns,
]
/** On any order, of whichever ledger. */
const report: Move = async (story, how, payout) =>
  (await pick(REPORTS, how)?.(story, Math.floor(how / REPORTS.length), payout)) ?? null

const query: Move = async ({ gateway, lost, queryPolicy }, _, { accountId, orderNo }) => {
  const account = [CURRENT, FORMER].find((each) => each.accountId === accountId)
  if (!account || orderNo === null) return null
  const afterGrace = systemClock.now() + queryPolicy.graceMs + 1_000
  const asked = { askedAt: afterGrace, presence: true, queryPolicy }
  const answer = gateway.answer(account)
  const about = { merchantId: 'acme', mchOrderNo: orderNo, source: 'QUERY' as const, ...account }
  await applyEvidenceBatch([{ ...about, ...asked, answer }], lost.deps)
  return `payoutd asks ${account.accountId}: ${answer.kind}`
}

/** A person who asked the gateway says only what is true; on a promise, they send whatever payoutd lets them send. */
const resolves =
  (what: string, resolutionOf: (story: SetBackStory, payout: Payout) => Resolution | null): Move =>
  async (story, _, payout) => {
    const resolution = resolutionOf(story, payout)
    if (!resolution) return null
    const { kind } = await resolvePayout({ ...KEY, ...WHO, resolution, shown: null }, story.lost.ledger)
    return `a person ${what}: ${kind}`
  }

const resend = (
  { account, gateway }: SetBackStory,
  { attempt, cancelRequest }: Payout,
  confirmedAbsentBy: string | null,
): Resolution => {
  const promises = { ...account.promises, duplicatesRefused: gateway.refusesDuplicates }
  const terms = { ...account, ...promises, deadlineMs: 60_000 }
  return { kind: 'resend', attempt, confirmedAbsentBy, deadline: null, cancelRequest, terms }
}

const PEOPLE: readonly Move[] = [
  resolves('calls it paid', ({ gateway }) => {
    const paid = gateway.with('success').at(-1)
    return paid ? { kind: 'paid', utr: utrOf(paid) } : null
  }),
  resolves('calls it failed', ({ gateway }) => (gateway.alive().length > 0 ? null : { kind: 'failed' })),
  resolves('sends it again, as the gateway has no order', (story, payout) =>
    story.gateway.alive().length > 0 ? null : resend(story, payout, 'the back office'),
  ),
  resolves('sends it again on a promise', (story, payout) => resend(story, payout, null)),
]

const ANSWERS: readonly Move[] = [
  answers('the gateway accepts it', accepts),
  answers('the gateway accepts it', accepts),
  answers('the gateway accepts it', acceptsInSilence(TIMEOUT)),
  answers('the gateway accepts it, and the ledger is lost before the answer comes', acceptsInSilence(null)),
  ...[TIMEOUT, REFUSED, NOT_SENT, LATER].map((each) => answers('the answer comes', () => each)),
]

const UNDER_WAY = [report, report, cancel, query, moveTo('review', 'expired', 'CLOCK')]

/** What may happen besides the gateway's reports, by the state of the payout. */
const NEXT: Partial<Record<State, readonly Move[]>> = {
  queued: [
    send,
    send,
    send,
    cancel,
    moveTo('held', 'duplicate', 'CLOCK'),
    moveTo('review', 'expired', 'CLOCK'),
  ],
  held: [cancel, moveTo('queued', 'released', 'OPERATOR')],
  submitting: ANSWERS,
  unknown: UNDER_WAY,
  processing: UNDER_WAY,
  review: PEOPLE,
}
