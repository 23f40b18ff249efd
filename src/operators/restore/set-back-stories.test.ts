import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anomaliesOf } from '../../../test/ledger.ts'
import { ABSENT } from '../../../test/lost-ledger.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import { endedUnpaid, type State } from '../../domain/payout/states.ts'
import { become } from '../../domain/payout/transition.ts'
import { decided } from '../operations.fixture.ts'
import {
  acceptedAs,
  exchange,
  LATER,
  NOT_SENT,
  REFUSED,
  reported,
  type SetBack,
  setBackLedger,
  TIMEOUT,
} from './set-back.fixture.ts'

const { STORIES = '60', SEED = '1' } = process.env

/** An order at the gateway, of one of the ledgers. */
type Order = { id: string; ledger: number; status: 'processing' | 'success' | 'failed' }

/** `answered`: the times of the attempts that the gateway has answered. */
type Story = { lost: SetBack; ledger: number; isSilent: boolean; answered: Set<string>; orders: Order[] }

const given = (order: Order) => ({
  agentpayOrderId: order.id,
  utr: order.status === 'success' ? `63261120000${order.id.slice(2)}` : null,
  status: order.status,
})

/** What the gateway knows, if asked: of several orders the one that is worst to miss. */
function known({ orders }: Story): QueryAnswer {
  const by = (status: Order['status']) => orders.findLast((order) => order.status === status)
  const order = by('success') ?? by('processing') ?? by('failed')
  return order ? reported(given(order)) : ABSENT
}

function accept({ orders, ledger }: Story): string {
  const id = `AP${orders.length + 1}`
  orders.push({ id, ledger, status: 'processing' })
  return id
}

/** What may happen next, by the state of the payout. */
const NEXT: Partial<Record<State, readonly ((story: Story) => Promise<unknown>)[]>> = {
  queued: [
    ({ lost }) => lost.sendAgain(),
    ({ lost }) => lost.sendAgain(),
    ({ lost }) => lost.cancel(),
    ({ lost: { ledger } }) =>
      decided(ledger, 'p', (before) => ({
        change: { before, after: become(before, 'held', { reason: 'duplicate' }), source: 'CLOCK', exchange },
      })),
  ],
  held: [
    ({ lost }) => lost.cancel(),
    ({ lost: { ledger } }) =>
      decided(ledger, 'p', (before) => ({
        change: { before, after: become(before, 'queued', {}), source: 'OPERATOR', exchange },
      })),
  ],
  submitting: [
    (story) => story.lost.say(acceptedAs(accept(story))),
    (story) => {
      accept(story)
      return story.lost.say(TIMEOUT)
    },
    async (story) => {
      // It is set back before the answer comes.
      accept(story)
      story.isSilent = true
    },
    ...[TIMEOUT, REFUSED, NOT_SENT, LATER].map((answer) => (story: Story) => story.lost.say(answer)),
  ],
}

/** The gateway reports on the latest order of this ledger that it had under way. */
async function report({ lost, orders, ledger }: Story, choice: number): Promise<void> {
  const order = orders.findLast((each) => each.ledger === ledger && each.status === 'processing')
  if (!order || choice % 3 === 0) return
  order.status = choice % 3 === 1 ? 'success' : 'failed'
  await lost.callBack(given(order))
}

async function step(story: Story, choice: number): Promise<void> {
  if (story.isSilent) return
  const { lost, answered } = story
  const state = (await lost.state())?.[0] as State
  const next = NEXT[state]
  if (!next) return report(story, choice)
  if (state === 'submitting') {
    const attempt = String(await lost.sentAt())
    // An answer that was lost with a ledger does not come again.
    if (answered.has(attempt)) return void (await lost.say(TIMEOUT))
    answered.add(attempt)
  }
  await next[choice % next.length]?.(story)
}

/** `breaksRules`: the command does, by the settings of the day; `backedUpBefore`: the step before which the backup was made that this ledger is set back to; null: nothing is left. */
const LIFE = fc.record({
  choices: fc.array(fc.nat(41), { minLength: 1, maxLength: 6 }),
  backedUpBefore: fc.option(fc.nat(5)),
  keptFrom: fc.nat(3),
  breaksRules: fc.nat(5).map((n) => n === 0),
})

const STORY = fc.record({
  lives: fc.array(LIFE, { minLength: 1, maxLength: 3 }),
  isOwnFirst: fc.boolean(),
  resendWhenAbsent: fc.boolean(),
})

test('whatever ledgers that were lost one after another did, a recovery ends no payout unpaid that may be paid, and tells of what was paid', async (t) => {
  const lost = await setBackLedger(t)
  const stateOf = async () => (await lost.state())?.[0] as State
  const all = async () =>
    JSON.stringify([await lost.now(), await lost.told(), await anomaliesOf(lost.ledger)])

  async function tell(given: typeof STORY extends fc.Arbitrary<infer Given> ? Given : never): Promise<void> {
    await lost.startAnew(given.isOwnFirst)
    const story: Story = { lost, ledger: 0, isSilent: false, answered: new Set(), orders: [] }
    let isBack = false
    for (const [i, { choices, backedUpBefore, keptFrom, breaksRules }] of given.lives.entries()) {
      story.isSilent = false
      if (!isBack) {
        story.ledger = i
        await (breaksRules ? lost.readAgain() : lost.read())
      }
      isBack = false
      for (const [at, choice] of choices.entries()) {
        if (at === backedUpBefore) {
          await lost.backUp()
          isBack = true
        }
        await step(story, choice)
      }
      if (i === given.lives.length - 1) break
      // Kafka may have dropped the beginning of it, but not all.
      await lost.lose((_, at, messages) => isBack || at >= Math.min(keptFrom, messages.length - 1))
      if (isBack) await lost.restoreBackUp()
    }
    if (given.lives.length === 1) assert.equal(await lost.beyond(), null)
    const recover = () => lost.recoverAll(known(story), given.resendWhenAbsent)
    await recover()

    const { orders } = story
    const state = await stateOf()
    const anomalies = await anomaliesOf(lost.ledger)
    const paid = orders.filter(({ status }) => status === 'success')
    if (orders.some(({ status }) => status !== 'failed')) {
      assert.ok(!endedUnpaid(state) || anomalies.length > 0, `${state}, and nobody is told`)
      assert.notEqual(state, 'queued')
    }
    // A rejected one has no order that it could be asked about.
    if (orders.some(({ status }) => status === 'processing'))
      assert.ok(state === 'rejected' || !endedUnpaid(state), state)
    if (paid.length > 1) assert.notDeepEqual(anomalies, [])
    assert.equal(await lost.beyond(), null)

    const once = await all()
    await recover()
    // What it left to a person, the gateway may meanwhile have paid.
    if (state !== 'review') assert.equal(await all(), once)
    const twice = await all()
    await recover()
    assert.equal(await all(), twice)
  }

  await fc.assert(fc.asyncProperty(STORY, tell), { numRuns: Number(STORIES), seed: Number(SEED) })
})
