import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CURRENT, FORMER } from '../../../../test/two-accounts.ts'
import { endedUnpaid } from '../../../domain/payout/states.ts'
import { sql } from '../../../platform/postgres/postgres.ts'
import { type SetBack, setBackLedger } from '../set-back.fixture.ts'
import { orderInWords, otherThan } from './gateway.fixture.ts'
import { type Choice, takeStep } from './moves.fixture.ts'
import { SetBackStory } from './story.fixture.ts'

/*
 * The rules, whatever happened to the ledgers before:
 * - A recovery ends once every account has answered.
 * - A recovered ledger sends nothing while an order is alive beside which the gateway may pay another.
 * - From a recovery on, nothing ends unpaid while an order is under way; only a rejected command does, with an anomaly.
 * - Nothing ends unpaid although an order is paid, without an anomaly; two payments are an anomaly too.
 * - Nothing is paid that no order paid.
 * - Nothing that was published is beyond a recovered ledger, or beyond one that was never lost.
 * - A recovery that comes after another one, with nothing in between, changes nothing.
 */
const { STORIES = '25', SEED = '1' } = process.env

const addSettings = sql<{ accountId: string; settingsHash: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, '', '', '', '')`

const CHOICE: fc.Arbitrary<Choice> = fc.record({ move: fc.nat(41), how: fc.nat(41) })
const oneIn = (n: number) => fc.nat(n - 1).map((each) => each === n - 1)

/** `before`: what happens before the step, if this is not the first ledger for a recovery. */
const STEP = fc.record({ choice: CHOICE, recoversBefore: oneIn(30), adoptsOtherBefore: oneIn(40) })

/**
 * The time of one ledger. `backedUpBefore`: the step before which the backup was made that the next ledger starts from; null:
 * nothing is left. `keptFrom`: Kafka has dropped the messages before that one; `drops`: it has nothing of that topic. `behind`: if
 * only this ledger is lost, how many of its last messages of each topic it never published.
 */
const LIFE = fc.record({
  steps: fc.array(STEP, { minLength: 1, maxLength: 7 }),
  backedUpBefore: fc.option(fc.nat(5)),
  monthsPassBefore: fc.nat(24).map((each) => (each < 5 ? each : null)),
  keptFrom: fc.nat(5),
  drops: fc.constantFrom(null, null, 'results', 'anomalies'),
  behind: fc.record({ events: fc.nat(5), results: fc.nat(2) }),
  breaksRules: oneIn(10),
  isAtFormer: fc.boolean(),
})

/** `isLate`: the last ledger reads the command after the recovery; `after`: null: it is recovered twice more instead. */
const STORY = fc.record({
  lives: fc.array(LIFE, { minLength: 1, maxLength: 3 }),
  isOwnFirst: fc.boolean(),
  refusesDuplicates: fc.boolean(),
  isLate: fc.boolean(),
  between: fc.option(CHOICE),
  after: fc.option(fc.array(CHOICE, { minLength: 1, maxLength: 6 }), { freq: 2 }),
})

type Life = typeof LIFE extends fc.Arbitrary<infer Given> ? Given : never
type Lives = typeof STORY extends fc.Arbitrary<infer Given> ? Given : never

test('whatever ledgers that were lost one after another did, a recovery pays nothing twice, ends nothing unpaid that may be paid, and tells of what was paid', async (t) => {
  const lost = await setBackLedger(t)
  for (const account of [CURRENT, FORMER]) await lost.db.run(addSettings, account)
  // A biased story is mostly too short to lose anything that matters.
  const property = fc.asyncProperty(fc.noBias(STORY), (told) => tellWithLog(lost, told))
  await fc.assert(property, { numRuns: Number(STORIES), seed: Number(SEED) })
})

async function tellWithLog(lost: SetBack, told: Lives): Promise<void> {
  const story = new SetBackStory(lost, told.refusesDuplicates)
  try {
    await tell(story, told)
  } catch (error) {
    const log = story.log.map((line) => `- ${line}`).join('\n')
    throw new Error(`${(error as Error).message}\nThe story:\n${log}\n`, { cause: error })
  }
}

async function tell(
  story: SetBackStory,
  { lives, isOwnFirst, isLate, between, after }: Lives,
): Promise<void> {
  await story.begin(isOwnFirst)
  await liveAll(story, lives, isLate)
  if (lives.length === 1) await nothingBeyond(story)
  await story.recover(async () => {
    if (between) await takeStep(story, between)
  })
  if (isLate && !(await story.payout())) {
    await story.read()
    await story.note('its command is read after the recovery')
  }
  await obeysRules(story)
  await nothingBeyond(story)
  await tellsOfEnds(story)
  if (story.gateway.paidBesides(story.account).length > 0) await story.note(await story.send())
  if (!after) return recoverTwiceMore(story)
  for (const choice of after) {
    await takeStep(story, choice)
    await obeysRules(story)
  }
}

async function liveAll(story: SetBackStory, lives: readonly Life[], isLate: boolean): Promise<void> {
  let isBack = false
  for (const [place, life] of lives.entries()) {
    const isLast = place === lives.length - 1
    story.account = life.isAtFormer ? FORMER : CURRENT
    if (isLate && isLast && place > 0) return
    if (!isBack) await story.read(life.breaksRules)
    await story.note(`ledger ${place + 1} begins, with the settings of ${story.account.accountId}`)
    isBack = await live(story, life, place > 0)
    if (!isLast) await lose(story, life, isBack, lives.length === 2)
  }
}

/** Returns whether a backup was made. */
async function live(
  story: SetBackStory,
  { steps, backedUpBefore, monthsPassBefore }: Life,
  mayRecover: boolean,
): Promise<boolean> {
  for (const [at, { choice, recoversBefore, adoptsOtherBefore }] of steps.entries()) {
    if (at === monthsPassBefore) {
      await story.dropHistory()
      await story.note('months pass, and its history is dropped')
    }
    if (at === backedUpBefore) {
      await story.backUp()
      await story.note('a backup is made')
    }
    if (adoptsOtherBefore) {
      await story.adopt(otherThan(story.account))
      await story.note(`the settings of ${story.account.accountId} are adopted`)
    }
    if (recoversBefore && mayRecover && !story.isSilent) {
      await story.recover()
      await obeysRules(story)
    }
    await takeStep(story, choice)
  }
  return backedUpBefore !== null && backedUpBefore < steps.length
}

/**
 * Kafka may have dropped the beginning of what this ledger published, or a topic, but not its latest event. Where no other ledger is
 * lost, it may lack the end of each topic instead: what the backup had yet to publish is published again.
 */
async function lose(
  story: SetBackStory,
  { keptFrom, drops, behind }: Life,
  isBack: boolean,
  isOnly: boolean,
): Promise<void> {
  const { lost } = story
  const { topics } = lost.ledger
  const isBehind = isOnly && behind.events + behind.results > 0
  await lost.lose(({ topic }, at, all) => {
    if (isBehind) {
      const after = all.slice(at + 1).filter((each) => each.topic === topic).length
      const kind = topic === topics.events ? 'events' : 'results'
      return (isBack && at < story.backedUpAt) || topic === topics.anomalies || after >= behind[kind]
    }
    const latest = all.findLastIndex((each) => each.topic === topics.events)
    return (
      (drops === null || topic !== topics[drops]) && (isBack || at >= Math.min(keptFrom, Math.max(latest, 0)))
    )
  })
  if (isBack) await lost.restoreBackUp()
  Object.assign(story, { isSilent: false, isRecovered: false })
  const dropped = isBehind
    ? `, ${behind.events} events and ${behind.results} results of it were never published`
    : drops
      ? `, and the ${drops} in Kafka`
      : ''
  await story.note(`the ledger is ${isBack ? 'set back to the backup' : 'lost'}${dropped}`)
}

async function obeysRules(story: SetBackStory): Promise<void> {
  const payout = await story.payout()
  if (!payout) return
  const { gateway } = story
  const { state } = payout
  const isTold = (await story.anomalies()).length > 0
  const [underWay] = gateway.with('processing')
  const paid = gateway.with('success')
  if (underWay && endedUnpaid(state))
    assert.ok(state === 'rejected' && isTold, `it ended as ${state} while order ${orderInWords(underWay)}`)
  if (paid[0] && endedUnpaid(state))
    assert.ok(isTold, `it ended as ${state} without an anomaly, although order ${orderInWords(paid[0])}`)
  if (paid.filter((each) => !each.isUnheard).length > 1)
    assert.ok(isTold, `it was paid twice without an anomaly: ${gateway.inWords()}`)
  if (state === 'paid')
    assert.ok(paid[0] ?? gateway.orders.some((each) => each.isReturned), 'it is paid, but no order was paid')
}

/** Whoever reads payout.results learned of each of these. Nothing is compared that is older than the history. */
async function tellsOfEnds(story: SetBackStory): Promise<void> {
  const ends = (await story.publishedEnds()).filter(({ at }) => at >= story.historySince)
  const paid = ends.filter(({ status }) => status === 'paid')
  const utrs = new Set(paid.flatMap(({ utr }) => utr ?? []))
  const isTwo = utrs.size > 1 || (paid.length > 0 && paid.length < ends.length)
  const inWords = ends.map(({ status, version }) => `${status} (version ${version})`).join(', ')
  assert.ok(
    !isTwo || (await story.anomalies()).length > 0,
    `nobody is told that it was published as ${inWords}`,
  )
}

async function nothingBeyond({ lost }: SetBackStory): Promise<void> {
  const beyond = await lost.beyond()
  assert.equal(beyond, null, `something was published that the ledger lacks: ${beyond}`)
}

async function recoverTwiceMore(story: SetBackStory): Promise<void> {
  const { lost } = story
  const all = async () => ({
    ...{
      payout: await lost.now(),
      published: await lost.publishedLines(),
      anomalies: await story.anomalies(),
    },
  })
  await story.recover()
  await obeysRules(story)
  const once = await all()
  await story.recover()
  assert.deepEqual(await all(), once, 'a recovery changed something that the one before it had settled')
}
