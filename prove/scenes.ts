import { setTimeout as delay } from 'node:timers/promises'
import type { Merchant } from '../src/config/merchants.ts'
import { type Paise, paise } from '../src/domain/money.ts'
import { createGatewayClient } from '../src/gateway/client.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import type { Crash } from './crash.ts'
import type { Bench } from './matrix.ts'
import { aboutOrder, postCallback } from './world/callback.ts'
import { MERCHANT_ID } from './world/merchants.ts'
import { findNothing, setFaults } from './world/sandbox-faults.ts'
import { MIX, REFUSING, type Verdict, World, type WorldOptions } from './world/world.ts'

/** One fault story, to play with the whole payoutd or without a part of it. */
export type Scene = {
  name: string
  /** Plays it in its own world; `without`: the safeguard that payoutd lacks. Returns the result. */
  play: (bench: Bench, without?: string) => Promise<Verdict & { faults: number }>
}

/** payoutd's dialect promises that the gateway refuses duplicates, but the gateway pays one number twice. */
export const PROMISED = { duplicateApply: 'refused', absence: { graceMs: 1000, confirmations: 2 } }

type Setting = Partial<Omit<WorldOptions, 'stack' | 'dir' | 'log' | 'name'>>

let worlds = 0

export async function inWorld(
  bench: Bench,
  setting: Setting,
  play: (world: World) => Promise<number>,
  patienceMs = 20_000,
): Promise<Verdict & { faults: number }> {
  const world = await World.open({ ...bench, name: `scene-${++worlds}`, ...setting })
  try {
    const faults = await play(world)
    return { ...(await world.verdict({ signal: bench.signal, patienceMs })), faults }
  } finally {
    await world.close()
  }
}

export const start = async (
  world: World,
  without: string | undefined,
  options: { roles?: string; group?: string; crash?: Crash } = {},
) => {
  const proc = await world.start({ ...options, ...(without && { without }) })
  if (!options.crash) await proc.up()
  return proc
}

/** Ends payoutd at a point, each time it gets there in `times` lives, and starts it again. */
const crashesAt = (name: string, crash: Pick<Crash, 'moment' | 'name'>, setting: Setting = {}): Scene => ({
  name,
  play: (bench, without) =>
    inWorld(bench, setting, async (world) => {
      const first = await start(world, without, { crash: { ...crash, nth: 1, how: 'kill' } })
      await world.ask(26)
      // The point may be missing: a safeguard passes its points only while it is in place.
      await eventually('the crash', () => first.isGone, 10_000).catch(() => first.kill())
      await start(world, without)
      return 1
    }),
})

export const taken = (world: World, count: number) =>
  eventually(`${count} orders`, async () => (await world.gateway.orders()).length >= count)

export const untilState = (world: World, payoutId: string, state: string) =>
  eventually(`${payoutId} in ${state}`, async () =>
    (await world.kept()).some((kept) => kept.payoutId === payoutId && kept.state === state),
  )

export const crashUnderWay = crashesAt(
  'killed while applies are on the wire, at a gateway that pays twice',
  { moment: 'under way', name: 'apply' },
  // No callback comes before a lease ends, so that only the lease decides.
  { sandbox: { settleMs: 6_000 } },
)

export const crashBeforeAnswers = crashesAt(
  'killed before the answers to applies are read, at a gateway that pays twice',
  { moment: 'after send', name: 'apply' },
  // No callback comes before a lease ends, so that only the lease decides.
  { sandbox: { settleMs: 6_000 } },
)

export const crashBetweenOffsetsAndCommands = crashesAt('killed after offsets were committed alone', {
  moment: 'after commit',
  name: 'test: offsets alone',
})

export const crashBetweenStateAndMessages = crashesAt('killed before messages were committed alone', {
  moment: 'before commit',
  name: 'test: messages alone',
})

export const crashAfterForgetting = crashesAt('killed right after published messages were deleted', {
  moment: 'after commit',
  name: 'forget published',
})

/** As when a proxy sends a request twice and passes on the second answer. */
export const deniedApplies: Scene = {
  name: 'the gateway takes applies and answers that it refuses them, or "later", and pays twice',
  play: (bench, without) =>
    // No callback comes before a query.
    inWorld(bench, { sandbox: { settleMs: 6_000 } }, async (world) => {
      await start(world, without)
      const denied = (retCode: string) => ({ fault: 'denied', operation: 'apply', next: 4, retCode })
      await setFaults(world, [denied('IFSC_INVALID'), denied('TOO_FAST')])
      await world.ask(20, [MIX.usual], ONE)
      return 8
    }),
}

/** Callbacks with another amount, with one status and then the other, or not from the gateway. */
export const falseCallbacks: Scene = {
  name: 'callbacks that name another amount, contradict an end, or are forged',
  play: (bench, without) =>
    inWorld(bench, { sandbox: { settleMs: 600 } }, async (world) => {
      await start(world, without)
      const accounts = ['9999000014', '9999000012', MIX['never called back']]
      await world.ask(30, accounts)
      await taken(world, 30)
      const orders = await world.gateway.orders()
      const statuses = await Promise.all(
        orders.map((order) =>
          postCallback(
            world,
            { ...aboutOrder(order), channelPayNo: '', status: '3', errorMessage: 'forged' },
            {
              key: 'not the key',
            },
          ),
        ),
      )
      if (!without && statuses.some((status) => status !== 401))
        throw new Error('a forged callback was not refused')
      return orders.length
    }),
}

/** Somebody pays the merchant. */
async function collect({ config, sandbox }: World, amount: Paise): Promise<void> {
  const { baseUrl, mchId, key, dialect } = config.merchants.get(MERCHANT_ID) as Merchant
  const client = createGatewayClient({ baseUrl, mchId, key, dialect, connections: 1, clock: systemClock })
  const order = { mchOrderNo: 'COLLECT1', amount, currency: 'INR', notifyUrl: 'http://127.0.0.1:9/nobody' }
  const details = { phoneNumber: null, payerEmail: null, accountName: null, returnUrl: null, remark: null }
  const answer = await client.payinCreate({ ...order, ...details }, { mayStillSend: () => true })
  await client.close()
  if (answer.kind !== 'accepted') throw new Error(`the payin was ${answer.kind}`)
  await fetch(`${sandbox.url}/checkout/${answer.payOrderId}/pay`, { method: 'POST' })
}

export const ONE = [{ merchantId: MERCHANT_ID }]

/** The balance covers a third of the payouts; more money comes later. */
export const shortBalance: Scene = {
  name: 'the balance covers only a part',
  play: (bench, without) =>
    inWorld(bench, { sandbox: { balance: 40_000n, payinSettleMs: 100 } }, async (world) => {
      await start(world, without)
      await world.ask(40, [MIX.usual], ONE)
      await delay(4_000)
      await collect(world, paise(1_000_000))
      return 1
    }),
}

/** Two payouts that only queries report: the positive control. */
export async function findOne(
  world: World,
  { signal }: Bench,
  merchants: typeof ONE | undefined = undefined,
): Promise<void> {
  await world.ask(2, [MIX['never called back']], merchants)
  await world.verdict({ signal })
}

/** A person, told that the gateway has no order of the first attempt, has the payout sent again. */
export async function sendAgain(world: World, payoutId: string): Promise<void> {
  const { exit } = await world.command([
    ...['payout', 'resolve', payoutId, '--merchant', MERCHANT_ID, '--by', 'Meera Iyer'],
    ...['--resend', '--attempt', '1', '--confirmed-absent-by', 'Support of the gateway'],
    ...['--reason', 'the gateway has no such order', '--yes'],
  ])
  if (exit !== 0) throw new Error(`resolve ended with ${exit}: ${world.procs.at(-1)?.tail()}`)
}

/** A process freezes with claimed payouts, past its lease; a person sends them again; the process wakes up. */
export const frozenPastItsLease: Scene = {
  name: 'frozen past its lease, sent again by a person, then resumed, at a gateway that pays twice',
  play: (bench, without) =>
    inWorld(bench, { review: 'any' }, async (world) => {
      await start(world, without, { roles: 'intake,outcomes,relay' })
      const first = await start(world, without, { roles: 'dispatch' })
      await findOne(world, bench)
      await first.kill()
      const [payoutId = ''] = await world.ask(1, [MIX.usual], ONE)
      const frozen = await start(world, without, {
        roles: 'dispatch',
        crash: { moment: 'after commit', name: 'claim', nth: 1, how: 'freeze' },
      })
      await eventually('the freeze', () => frozen.isFrozen())
      await untilState(world, payoutId, 'review')
      await sendAgain(world, payoutId)
      await start(world, without, { roles: 'dispatch' })
      await taken(world, 3)
      frozen.signal('SIGCONT')
      await delay(2_000)
      return 1
    }),
}

type Forgetting = {
  forMs: number
  setting: Setting
  /** What queries find before: with `nothing`, these settings have never found anything. */
  before: 'some' | 'nothing'
  /** … and meanwhile, of what they found before. */
  meanwhile: 'the same' | 'nothing'
}

/** The gateway accepted orders, lost its answers, and does not find the orders for a while. */
const forgetful = (name: string, { forMs, setting, before, meanwhile }: Forgetting): Scene => ({
  name,
  play: (bench, without) =>
    inWorld(bench, setting, async (world) => {
      await start(world, without)
      if (before === 'some') await findOne(world, bench)
      await findNothing(world, { new: meanwhile === 'the same' })
      await world.ask(6, [MIX['taken, never answered'], MIX['taken, HTTP 500'], MIX['taken, reset']])
      await delay(forMs)
      await setFaults(world, [])
      return 6
    }),
})

export const notFoundForAWhile = forgetful(
  'the gateway finds nothing for less than the grace, and pays twice against its promise',
  {
    forMs: 2_500,
    setting: {
      sandbox: { settleMs: 6_000 },
      dialect: { ...PROMISED, absence: { graceMs: 5_000, confirmations: 2 } },
    },
    before: 'some',
    meanwhile: 'the same',
  },
)

export const neverFound = forgetful(
  'the gateway never finds anything with these settings, and pays twice against its promise',
  {
    forMs: 9_000,
    setting: { sandbox: { settleMs: 8_000 }, dialect: PROMISED },
    before: 'nothing',
    meanwhile: 'nothing',
  },
)

export const foundNoLonger = forgetful(
  'the gateway stops finding anything for longer than the grace, and pays twice against its promise',
  {
    forMs: 13_000,
    setting: {
      sandbox: { settleMs: 12_000 },
      // Longer than earlier findings count as evidence of absence.
      dialect: { ...PROMISED, absence: { graceMs: 6_000, confirmations: 2 } },
    },
    before: 'some',
    meanwhile: 'nothing',
  },
)

export const notFoundForTooLong = forgetful(
  'the gateway finds nothing for longer than the grace, and refuses duplicates',
  {
    forMs: 6_000,
    setting: { ...REFUSING, sandbox: { ...REFUSING.sandbox, settleMs: 5_000 } },
    before: 'some',
    meanwhile: 'the same',
  },
)
