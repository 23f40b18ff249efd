import { setTimeout as delay } from 'node:timers/promises'
import type { GatewayOrder } from '../../devkit/oracle/gateway-books.ts'
import type { LedgerEvidence, LedgerRecord } from '../../devkit/oracle/ledger-records.ts'
import type { PublishedAnomaly } from '../../devkit/oracle/published-messages.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { type Bench, type Row, rowOf, withWrong } from '../matrix.ts'
import { aboutOrder, postCallback } from '../world/callback.ts'
import { furtherMerchants, type WorldMerchant } from '../world/merchants.ts'
import { drive, faultsLeft, findNothing, setFaults } from '../world/sandbox-faults.ts'
import { Wire } from '../world/wire.ts'
import { MIX, World, type WorldOptions } from '../world/world.ts'

const SECTION = 'hostile order'

/** What the gateway reports in the wrong order, number or amount, and the required result. */
type HostileStory = {
  name: string
  quick?: true
  setting?: Pick<WorldOptions, 'dialect' | 'sandbox'>
  play: (world: World, bench: Bench) => Promise<Played>
}
type Played = {
  /** Irregular callbacks, answers and queries. */
  hostile: number
  /** Every anomaly that payoutd must keep and publish, as `kind order`; each may come more than once. */
  anomalies: readonly string[]
  /** What else is wrong, as text. */
  wrong: readonly string[]
}

/** At first only the prover's callbacks end a payout, so that they come first; later queries do. */
const BY_HAND = { dialect: { queryAfterMs: [4_000] } }
const UNTOLD = [MIX['never called back']]
const SUCCESS_THEN_DENIED = '9999000012'
const OTHER_AMOUNT = '9999000014'

type OddText = { text: string; isAmbiguous: boolean }
const ODD_TEXTS: readonly OddText[] = [
  { text: '\u0000', isAmbiguous: true },
  { text: 'a\u0000b', isAmbiguous: true },
  { text: '\u001b[2J', isAmbiguous: true },
  { text: '\u202egnihton', isAmbiguous: false },
  { text: '\\u0000', isAmbiguous: false },
  { text: '\ufffe', isAmbiguous: false },
]

const STORIES: readonly HostileStory[] = [
  {
    name: 'a callback arrives before the answer to the apply',
    play: async (world) => {
      await startAndAsk(world, 26, [MIX['called back before the answer']])
      await world.verdict()
      const overtaken = await among(world, ({ history }) =>
        history.some(({ source, version }) => source === 'APPLY' && version === null),
      )
      return { hostile: 26, anomalies: [], wrong: short('overtaken answers', overtaken, 26) }
    },
  },
  {
    name: 'the answer to the apply arrives after the callback and after the lease',
    play: async (world) => {
      const endpoint = await world.start({ roles: 'intake,outcomes,relay' })
      await endpoint.up()
      const crash = { moment: 'under way', name: 'apply', nth: 3, how: 'freeze' } as const
      const late = await world.start({ roles: 'dispatch', crash })
      await world.ask(6, [MIX.usual])
      await eventually('the freeze', () => late.isFrozen())
      const [, before] = await Promise.all([delay(5_000), ended(world)])
      late.signal('SIGCONT')
      await eventually(
        'a late answer',
        async () =>
          (await among(world, ({ history }) => history.some((each) => isOvertaken(each, history)))) > 0,
      )
      return { hostile: before.size, anomalies: [], wrong: await changedSince(world, before) }
    },
  },
  {
    name: 'each callback arrives twice',
    play: async (world) => {
      await setFaults(world, [{ fault: 'duplicate-callback', operation: 'payoutCallback', percent: 100 }])
      await startAndAsk(world, 26, [MIX['called back twice'], MIX.fails])
      await world.verdict()
      const heardTwice = await among(world, ({ history }) => saidBy('CALLBACK', history) >= 2)
      return { hostile: 26 + 13 + 13, anomalies: [], wrong: short('heard twice', heardTwice, 26) }
    },
  },
  {
    name: 'each callback arrives 100 times at once',
    quick: true,
    setting: BY_HAND,
    play: async (world) => {
      const orders = await untold(world, 5)
      const wrong = await answers(
        200,
        orders.flatMap((order) => Array.from({ length: 100 }, () => postCallback(world, aboutOrder(order)))),
      )
      const heard = await among(world, ({ history }) => saidBy('CALLBACK', history) === 100)
      return { hostile: 500, anomalies: [], wrong: [...wrong, ...short('heard 100 times', heard, 5)] }
    },
  },
  {
    name: 'a late "processing" arrives after the end',
    play: async (world) => {
      await setFaults(world, [{ fault: 'out-of-order-callback', operation: 'payoutCallback', percent: 100 }])
      await startAndAsk(world, 26, [MIX.usual, MIX.fails])
      const before = await ended(world)
      const orders = await world.gateway.orders()
      const again = ['0', '1'].flatMap((status) =>
        orders.map((order) => postCallback(world, { ...aboutOrder(order), status, channelPayNo: '' })),
      )
      const wrong = await answers(200, again)
      return { hostile: 26 * 3, anomalies: [], wrong: [...wrong, ...(await changedSince(world, before))] }
    },
  },
  {
    name: 'paid, then failed',
    quick: true,
    play: async (world) => {
      await startAndAsk(world, 26, [SUCCESS_THEN_DENIED])
      return {
        hostile: 26,
        anomalies: await each(world, 'contradiction'),
        wrong: await endedAs(world, 'paid'),
      }
    },
  },
  {
    name: 'failed, then paid',
    play: async (world) => {
      await setFaults(world, [{ fault: 'contradictory-callback', operation: 'payoutCallback', percent: 100 }])
      await startAndAsk(world, 26, [MIX.fails])
      const anomalies = await each(world, 'contradiction')
      return { hostile: 26, anomalies, wrong: await endedAs(world, 'failed') }
    },
  },
  {
    name: 'callbacks name another amount',
    play: async (world) => {
      await startAndAsk(world, 26, [OTHER_AMOUNT])
      return {
        hostile: 26,
        anomalies: await each(world, 'amount-mismatch'),
        wrong: await endedAs(world, 'paid'),
      }
    },
  },
  {
    name: 'callbacks name another merchant, signed by either merchant',
    quick: true,
    setting: BY_HAND,
    play: async (world) => {
      const [other] = furtherMerchants(1)
      if (!other) throw new Error('one was asked for')
      await world.addMerchants([other])
      const orders = await untold(world, 6)
      const failed = orders.map(asFailed)
      const { merchantId: endpoint, key } = other
      const wrong = [
        ...(await answers(
          401,
          failed.flatMap((fields) => [
            postCallback(world, fields, { endpoint }),
            postCallback(world, fields, { key }),
          ]),
        )),
        ...(await answers(
          200,
          failed.map((fields) => postCallback(world, fields, { endpoint, key })),
        )),
      ]
      // One after the other: payoutd handles only a few callbacks for unknown orders at once.
      for (const fields of failed)
        wrong.push(...(await answers(404, [postCallback(world, fields, { endpoint: 'nobody' })])))
      const anomalies = orders.map(({ mchOrderNo }) => `unknown-order ${mchOrderNo}`)
      return { hostile: 4 * orders.length, anomalies, wrong }
    },
  },
  {
    name: 'callbacks have a valid signature and a wrong order number',
    setting: BY_HAND,
    play: async (world) => {
      const orders = await untold(world, 6)
      const pairs = orders.map(
        (order, i) => [asFailed(order), asFailed(orders.at(i - 1) as GatewayOrder)] as const,
      )
      const swapped = pairs.flatMap(([fields, { mchOrderNo = '', amount = '' }], i) => [
        { ...fields, mchOrderNo: `NOBODYS${i}` },
        { ...fields, mchOrderNo },
        { ...fields, mchOrderNo, amount },
      ])
      const wrong = await answers(
        200,
        swapped.map((fields) => postCallback(world, fields)),
      )
      // Whose order it is comes before its amount.
      const anomalies = orders.flatMap(({ mchOrderNo }, i) => [
        `unknown-order NOBODYS${i}`,
        `order-id-mismatch ${mchOrderNo}`,
      ])
      return { hostile: swapped.length, anomalies, wrong }
    },
  },
  {
    name: 'the same callbacks arrive again after a day, and at a fresh process',
    play: async (world) => {
      await startAndAsk(world, 26, [MIX.usual, MIX.fails])
      const before = await ended(world)
      const callbacks = (await world.gateway.orders()).map(aboutOrder)
      await drive(world, 86_400_000)
      const replay = async () =>
        answers(
          200,
          Array.from({ length: 10 }, () => callbacks.map((fields) => postCallback(world, fields))).flat(),
        )
      const toTheSame = await replay()
      await world.killAll()
      await (await world.start()).up()
      const wrong = [...toTheSame, ...(await replay()), ...(await changedSince(world, before))]
      return { hostile: 20 * callbacks.length, anomalies: [], wrong }
    },
  },
  {
    name: 'callbacks contradict a query',
    play: async (world) => {
      await startAndAsk(world, 13, UNTOLD)
      const before = await ended(world)
      const denials = (await world.gateway.orders()).map(asFailed)
      const wrong = await answers(
        200,
        denials.map((fields) => postCallback(world, fields)),
      )
      const anomalies = await each(world, 'contradiction')
      return { hostile: 13, anomalies, wrong: [...wrong, ...(await changedSince(world, before))] }
    },
  },
  {
    name: 'queries under way contradict the callback',
    setting: {
      dialect: {
        queryAfterMs: [6_000],
        leaseMs: 45_000,
        absence: { graceMs: 45_500, confirmations: 2 },
        sendTimeoutMs: { connect: 300, headers: 30_000, body: 500 },
      },
    },
    play: async (world) => {
      const wire = await Wire.to(new URL(world.sandbox.url).host)
      try {
        world.reachGatewayAt(`http://127.0.0.1:${wire.port}`)
        const orders = await untold(world, 6)
        // An answer before the callback would be the first report.
        wire.hold()
        await setFaults(world, [{ fault: 'contradictory', operation: 'queryPayout', next: orders.length }])
        await eventually('answers under way', async () => (await faultsLeft(world)).length === 0)
        const wrong = await answers(
          200,
          orders.map((order) => postCallback(world, aboutOrder(order))),
        )
        const before = await ended(world)
        wire.mend()
        const anomalies = await each(world, 'contradiction')
        await eventually(
          'the late answers',
          async () => (await world.db.run(kept, {})).length >= orders.length,
        )
        return {
          hostile: orders.length,
          anomalies,
          wrong: [...wrong, ...(await changedSince(world, before))],
        }
      } finally {
        await wire.close()
      }
    },
  },
  {
    name: 'queries of an operator contradict the callbacks',
    play: async (world) => {
      await startAndAsk(world, 26, [MIX.usual, MIX.fails])
      const before = await ended(world)
      await setFaults(world, [{ fault: 'contradictory', operation: 'queryPayout', percent: 100 }])
      const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10)
      const period = ['--from', day(-1), '--to', day(2), '--rate', '100/s']
      const wrong: string[] = []
      for (const { merchantId } of world.merchants) {
        const args = ['reconcile', '--merchant', merchantId, ...period, '--settle', '--yes', ...BY]
        const { exit } = await world.command(args)
        if (exit !== 1) wrong.push(`reconcile that finds contradictions ended with ${exit}`)
      }
      await setFaults(world, [])
      const anomalies = await each(world, 'contradiction')
      return { hostile: 26, anomalies, wrong: [...wrong, ...(await changedSince(world, before))] }
    },
  },
  {
    name: '"not found" repeatedly, then "success"',
    setting: { sandbox: { settleMs: 6_000 } },
    play: async (world) => {
      await startAndAsk(world, 2, UNTOLD)
      await ended(world)
      await findNothing(world, { new: true })
      await world.ask(9, [MIX['taken, never answered'], MIX['taken, HTTP 500'], MIX['taken, reset']])
      const denied = ({ history }: LedgerRecord) =>
        saidBy(
          'QUERY',
          history.filter(({ said }) => said?.retCode === 'ORDER_NOT_FOUND'),
        )
      await eventually('denials', async () => (await among(world, (one) => denied(one) >= 2)) === 9)
      await setFaults(world, [])
      return { hostile: 9, anomalies: [], wrong: await endedAs(world, 'paid') }
    },
  },
  {
    name: 'one merchant’s gateway does not answer, and every payout of the other merchant ends meanwhile',
    play: async (world) => {
      const [merchant, hanging] = world.merchants as [WorldMerchant, WorldMerchant]
      // Its gateway has to do well before payoutd sends it more than one at a time.
      await startAndAsk(world, 13, [MIX.usual])
      await ended(world)
      const hangs = { fault: 'hang', mchId: hanging.mchId, percent: 100 }
      await setFaults(world, [
        { ...hangs, operation: 'apply', done: true },
        { ...hangs, operation: 'queryPayout' },
      ])
      await world.ask(400, [MIX.usual], [hanging])
      await eventually('some under way', async () => (await among(world, isOpenOf(hanging))) >= 8)
      await world.ask(40, [MIX.usual, MIX['never called back']], [merchant])
      const left = await stillOpen(world, merchant)
      await setFaults(world, [])
      return { hostile: 400, anomalies: [], wrong: left === 0 ? [] : [`${left} of the other had not ended`] }
    },
  },
  {
    name: 'callbacks contain text that the database refuses, or that is not well-formed',
    setting: BY_HAND,
    play: async (world) => {
      const orders = await untold(world, 12)
      const told = orders.map((order, i) => ({ order, ...(ODD_TEXTS[i % ODD_TEXTS.length] as OddText) }))
      const wrong = await answers(
        200,
        told.map(({ order, text }) =>
          postCallback(world, { ...asFailed(order), status: '1', errorMessage: text }),
        ),
      )
      const anomalies = told
        .filter(({ isAmbiguous }) => isAmbiguous)
        .map(({ order }) => `ambiguous-callback ${order.mchOrderNo}`)
      return { hostile: orders.length, anomalies, wrong: [...wrong, ...(await endedAs(world, 'paid'))] }
    },
  },
]

const OPEN = new Set(['submitting', 'unknown', 'processing'])
const isOpenOf =
  ({ merchantId }: WorldMerchant) =>
  (kept: LedgerRecord): boolean =>
    kept.merchantId === merchantId && OPEN.has(kept.state)

/** How many payouts of a merchant have not ended within the time allowed beside a gateway that hangs. */
async function stillOpen(world: World, { merchantId }: WorldMerchant): Promise<number> {
  const left = () =>
    among(world, (kept) => kept.merchantId === merchantId && kept.state !== 'paid' && kept.state !== 'failed')
  await eventually('the other merchant', async () => (await left()) === 0, 15_000).catch(() => undefined)
  return left()
}

/** The gateway reports too early, too late, too often, about another order, or the opposite. */
export async function* hostileOrder(bench: Bench): AsyncGenerator<Row> {
  for (const [i, story] of STORIES.filter(({ quick }) => !bench.quick || quick).entries()) {
    bench.signal.throwIfAborted()
    bench.tell(story.name)
    const world = await World.open({ ...bench, name: `hostile-${i}`, ...story.setting })
    try {
      const { hostile, anomalies, wrong } = await story.play(world, bench)
      const verdict = await world.verdict({ signal: bench.signal })
      const row = rowOf({ section: SECTION, name: story.name, runs: 1, faults: hostile }, verdict)
      yield withWrong(row, [...wrong, ...(await compareAnomalies(world, verdict.anomalies, anomalies))])
    } finally {
      await world.close()
    }
  }
}

async function startAndAsk(world: World, count: number, accounts: readonly string[]): Promise<void> {
  await (await world.start()).up()
  await world.ask(count, accounts)
}

/** Payouts that the gateway has paid, without any report to payoutd yet. */
async function untold(world: World, count: number): Promise<GatewayOrder[]> {
  await startAndAsk(world, count, UNTOLD)
  await eventually('accepted payouts', async () => {
    const orders = await world.gateway.orders()
    const accepted = await among(world, ({ state }) => state === 'processing')
    return accepted === count && orders.every(({ status }) => status !== 1)
  })
  return world.gateway.orders()
}

const asFailed = (order: GatewayOrder): Record<string, string> => ({
  ...aboutOrder(order),
  ...{ status: '3', channelPayNo: '', errorMessage: 'not so' },
})

/** How many payouts of the ledger match. */
const among = async (world: World, is: (kept: LedgerRecord) => boolean): Promise<number> =>
  (await world.kept()).filter(is).length

const BY = ['--by', 'Meera Iyer', '--reason', 'tried by the prover']

const from = (source: string, history: readonly LedgerEvidence[]) =>
  history.filter((each) => each.source === source)

const saidBy = (source: string, history: readonly LedgerEvidence[]): number =>
  from(source, history).reduce((sum, { times }) => sum + times, 0)

/** An answer to apply that changed nothing, for a payout that a callback has ended. */
const isOvertaken = ({ source, version }: LedgerEvidence, history: readonly LedgerEvidence[]): boolean =>
  source === 'APPLY' && version === null && from('CALLBACK', history).some((each) => each.version !== null)

/** Waits until all have ended, and returns how. */
async function ended(world: World): Promise<Map<string, string>> {
  await world.verdict()
  return new Map((await world.kept()).map(({ payoutId, ...kept }) => [payoutId, endOf(kept)]))
}

const endOf = ({ state, version }: Pick<LedgerRecord, 'state' | 'version'>): string =>
  `${state} as version ${version}`

/** Ends that have changed. */
async function changedSince(world: World, before: ReadonlyMap<string, string>): Promise<string[]> {
  return (await world.kept())
    .filter(({ payoutId, ...kept }) => before.get(payoutId) !== endOf(kept))
    .map(({ payoutId, ...kept }) => `changed: ${payoutId} was ${before.get(payoutId)}, is ${endOf(kept)}`)
}

/** Payouts that end otherwise. */
async function endedAs(world: World, state: string): Promise<string[]> {
  await world.verdict()
  return (await world.kept())
    .filter((kept) => kept.state !== state)
    .map((kept) => `ended otherwise: ${kept.payoutId} is ${kept.state} instead of ${state}`)
}

const short = (what: string, found: number, wanted: number): string[] =>
  found === wanted ? [] : [`${what}: ${found} instead of ${wanted}`]

/** Posts with another HTTP status as answer. */
const answers = async (status: number, posts: readonly Promise<number>[]): Promise<string[]> =>
  (await Promise.all(posts))
    .filter((answered) => answered !== status)
    .map((answered) => `answered ${answered} instead of ${status}`)

/** The anomaly of this kind about each order. */
const each = async (world: World, kind: string): Promise<string[]> => {
  await world.verdict()
  return (await world.kept()).map(({ orderNo }) => `${kind} ${orderNo}`)
}

const kept = sql<object, { kind: string; orderNo: string | null; whole: boolean }>`
  select kind, order_no, coalesce(exchange ? 'request' or exchange ? 'response', false) as whole from anomalies`

/** Anomalies that are missing, unexpected, unpublished, or kept without the evidence. */
async function compareAnomalies(
  world: World,
  told: readonly PublishedAnomaly[],
  wanted: readonly string[],
): Promise<string[]> {
  const inLedger = await world.db.run(kept, {})
  const published = new Map(told.map((one) => [one.eventId, `${one.kind} ${one.mchOrderNo}`]))
  return [
    ...difference(
      'kept',
      new Set(inLedger.map(({ kind, orderNo }) => `${kind} ${orderNo}`)),
      new Set(wanted),
    ),
    ...difference('published', new Set(published.values()), new Set(wanted)),
    ...short('published anomalies of those kept', published.size, inLedger.length),
    ...inLedger
      .filter(({ whole }) => !whole)
      .map(({ kind, orderNo }) => `kept without what was said: ${kind} ${orderNo}`),
  ]
}

const difference = (what: string, found: ReadonlySet<string>, wanted: ReadonlySet<string>): string[] => [
  ...[...wanted].filter((one) => !found.has(one)).map((one) => `not ${what}: ${one}`),
  ...[...found]
    .filter((one) => !wanted.has(one))
    .map((one) => `${what}, though nothing called for it: ${one}`),
]
