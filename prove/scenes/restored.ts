import type { Merchant } from '../../src/config/merchants.ts'
import { createGatewayClient } from '../../src/gateway/client.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { outboxMessages } from '../../test/outbox-messages.ts'
import { inWorld, ONE, type Scene, start, taken, untilState } from '../scenes.ts'
import { Backup } from '../world/backup.ts'
import { aboutOrder, callBack } from '../world/callback.ts'
import { MERCHANT_ID } from '../world/merchants.ts'
import { type PayinLine, payinsAt } from '../world/payin-books.ts'
import { drive, findNothing, setFaults } from '../world/sandbox-faults.ts'
import { MIX, type World } from '../world/world.ts'

export const WHO = ['--by', 'Asha Rao', '--reason', 'the disk of the database was lost']
const DECIDED = ['--merchant', MERCHANT_ID, ...WHO, '--yes']
/** Nothing ends at the gateway before the sandbox's clock is moved forward. */
const SETTLE_MS = 3_600_000

export const unpublished = sql<
  object,
  { count: number }
>`select count(*)::int as count from ${outboxMessages}`
export const fenced = sql<object, { merchantId: string }>`
  select merchant_id from merchants where recovering_since is not null`

export async function commandDone(world: World, args: readonly string[], without?: string): Promise<void> {
  const { exit, proc } = await world.command(args, undefined, without)
  if (exit !== 0) throw new Error(`payoutd ${args[0]} ended with ${exit}: ${proc.tail()}`)
}

const backedUp = async (world: World): Promise<Backup> => {
  await world.killAll()
  return Backup.of(world.settings.DATABASE_URL as string)
}

const allPublished = (world: World) =>
  eventually('all published', async () => (await world.db.run(unpublished, {}))[0]?.count === 0)

const eachIn = (world: World, payoutIds: readonly string[], state: string) =>
  Promise.all(payoutIds.map((payoutId) => untilState(world, payoutId, state)))

/**
 * Restores the database and runs `payoutd recover`; there must be commands to read again. `meanwhile`: what happens
 * while all is fenced, before any is read.
 */
async function recovered(
  world: World,
  without: string | undefined,
  backup: Backup,
  meanwhile: () => Promise<void>,
): Promise<void> {
  await world.killAll()
  await backup.restore()
  const recovering = commandDone(world, ['recover', ...WHO, '--rate', '200', '--yes'], without)
  await eventually('the fence', async () => (await world.db.run(fenced, {})).length > 0)
  await start(world, without, { roles: 'outcomes,relay' })
  await meanwhile()
  await start(world, without, { roles: 'intake,dispatch' })
  await recovering
}

/**
 * The gateway did not accept a payout's first apply. A person sent it again, and the gateway accepted that; the
 * restore lost it.
 */
export const failedInFence: Scene = {
  name: 'after a restore that lost the second of two orders, the gateway reports the first as failed',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', sandbox: { settleMs: SETTLE_MS } }, async (world) => {
      await start(world, without)
      await eachIn(world, await world.ask(2, [MIX['never called back']], ONE), 'processing')
      const [payoutId = ''] = await world.ask(1, [MIX['not taken, hangs once']], ONE)
      await untilState(world, payoutId, 'review')
      const backup = await backedUp(world)
      await start(world, without)
      const resend = ['--resend', '--attempt', '1', '--confirmed-absent-by', 'Support of the gateway']
      await commandDone(world, ['payout', 'resolve', payoutId, ...resend, ...DECIDED])
      await taken(world, 3)
      const second = (await world.gateway.orders()).at(-1)
      if (!second) throw new Error('the gateway has no second order')
      await eachIn(world, [payoutId, ...(await world.ask(4, [MIX.usual]))], 'processing')
      await allPublished(world)
      await recovered(world, without, backup, async () => {
        const failed = { status: '3', channelPayNo: '', errorMessage: 'account closed' }
        await callBack(world, { ...aboutOrder(second), agentpayOrderId: 'THE-FIRST-ONE', ...failed })
        await allPublished(world)
      })
      world.mustEndAs('paid', [payoutId])
      await drive(world, SETTLE_MS)
      return 1
    }),
}

/** A person failed them because the gateway found nothing, and the restore lost that. Then the gateway pays them. */
export const endedTwice: Scene = {
  name: 'after a restore that lost a person’s published "failed", the payouts are paid',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', sandbox: { settleMs: SETTLE_MS } }, async (world) => {
      // So that nothing queries them before the backup.
      await start(world, without, { roles: 'intake,dispatch,relay' })
      await eachIn(world, await world.ask(2, [MIX['never called back']], ONE), 'processing')
      await findNothing(world, { new: true })
      const payoutIds = await world.ask(2, [MIX['taken, never answered']], ONE)
      await eachIn(world, payoutIds, 'unknown')
      const backup = await backedUp(world)
      await start(world, without)
      await eachIn(world, payoutIds, 'review')
      await callFailed(world, payoutIds)
      await setFaults(world, [])
      await eachIn(world, await world.ask(4, [MIX.usual]), 'processing')
      await allPublished(world)
      world.mayEndTwice(payoutIds)
      world.mustEndAs('paid', payoutIds)
      await recovered(world, without, backup, async () => {
        await drive(world, SETTLE_MS)
        await eachIn(world, payoutIds, 'paid')
      })
      await callPaid(world, payoutIds)
      return 1
    }),
}

/**
 * payoutd published them as paid, and the restore lost that. Nobody notices: the gateway finds nothing just then,
 * and a person fails them, with versions above that of the payment.
 */
export const calledFailedSince: Scene = {
  name: 'after an unnoticed restore that lost published payments, a person calls these payouts failed',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', sandbox: { settleMs: SETTLE_MS } }, async (world) => {
      await start(world, without, { roles: 'intake,dispatch,relay' })
      await eachIn(world, await world.ask(2, [MIX['never called back']], ONE), 'processing')
      const found = (await world.gateway.orders()).map(({ mchOrderNo }) => mchOrderNo)
      const payoutIds = await world.ask(2, [MIX['taken, never answered']], ONE)
      await eachIn(world, payoutIds, 'unknown')
      const backup = await backedUp(world)
      await start(world, without)
      await drive(world, SETTLE_MS)
      await eachIn(world, payoutIds, 'paid')
      await allPublished(world)
      await world.killAll()
      await backup.restore()
      await setFaults(world, [{ fault: 'not-found', operation: 'queryPayout', percent: 100, except: found }])
      await start(world, without)
      await eachIn(world, payoutIds, 'review')
      await callFailed(world, payoutIds)
      await allPublished(world)
      await setFaults(world, [])
      world.mayEndTwice(payoutIds)
      world.mustEndAs('paid', payoutIds)
      await commandDone(world, ['recover', ...WHO, '--rate', '200', '--yes'], without)
      await callPaid(world, payoutIds)
      return 1
    }),
}

async function callFailed(world: World, payoutIds: readonly string[]): Promise<void> {
  for (const payoutId of payoutIds)
    await commandDone(world, ['payout', 'resolve', payoutId, '--failed', '--attempt', '1', ...DECIDED])
}

/** Marks those in review as paid, with the gateway's UTRs. */
async function callPaid(world: World, payoutIds: readonly string[]): Promise<void> {
  const orders = await world.gateway.orders()
  const kept = await world.kept()
  for (const payoutId of payoutIds) {
    const { orderNo, state } = kept.find((each) => each.payoutId === payoutId) ?? {}
    const utr = orders.find(({ mchOrderNo }) => mchOrderNo === orderNo)?.utr ?? ''
    if (state === 'review')
      await commandDone(world, ['payout', 'resolve', payoutId, '--paid', '--utr', utr, ...DECIDED])
  }
}

const MAXIMUM_RUPEES = 9

/**
 * Paid, in progress, accepted but unsent, and not yet accepted: commands that break a rule when payoutd reads them
 * again.
 */
export const loweredMaximum: Scene = {
  name: 'Postgres: restored to an earlier state, and a maximum lowered before commands are read again, at a gateway that pays twice',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', sandbox: { settleMs: SETTLE_MS } }, async (world) => {
      await start(world, without)
      await eachIn(world, await world.ask(4, [MIX['never called back']]), 'processing')
      const backup = await backedUp(world)
      await start(world, without)
      const paid = await world.ask(8, [MIX.usual])
      await eachIn(world, paid, 'processing')
      await drive(world, SETTLE_MS)
      await eachIn(world, paid, 'paid')
      const underWay = await world.ask(4, [MIX.usual])
      await eachIn(world, underWay, 'processing')
      for (const { merchantId } of world.merchants)
        await commandDone(world, ['pause', merchantId, ...WHO, '--yes'])
      const waiting = await world.ask(2, [MIX.usual])
      await eachIn(world, waiting, 'queued')
      await allPublished(world)
      await world.killAll()
      const unread = await world.ask(2, [MIX.usual])
      world.lowerMaximum(MAXIMUM_RUPEES)
      world.mustEndAs('rejected', [...waiting, ...unread])
      world.mustEndAs('paid', [...paid, ...underWay])
      await recovered(world, without, backup, () => Promise.resolve())
      await drive(world, SETTLE_MS)
      return 1
    }),
}

/**
 * The payer pays without a report to the gateway and the payin fails; the restore loses that, and the payment is
 * found before payoutd runs again.
 */
export const payinPaidLate: Scene = {
  name: 'after a restore that lost a published failure, the payin is paid',
  play: (bench, without) =>
    inWorld(bench, {}, async (world) => {
      const proc = await start(world, without)
      await world.ask(2, [MIX.usual])
      const created = await fetch(`${proc.internalUrl}/v1/payins`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'one' },
        body: JSON.stringify({ merchantId: MERCHANT_ID, amount: 50_000 }),
      })
      const { payinId, payOrderId } = (await created.json()) as { payinId: string; payOrderId: string }
      if (!created.ok) throw new Error(`the payin was answered ${created.status}`)
      world.expectPayin(payinId)
      const backup = await backedUp(world)
      await start(world, without)
      await press(world, payOrderId, 'pay-untold')
      await press(world, payOrderId, 'expire')
      await eventually(
        'the payin failed',
        async () => (await world.db.run(payinState, {}))[0]?.state === 'failed',
      )
      await world.ask(2, [MIX.usual])
      await world.verdict({ signal: bench.signal })
      await world.killAll()
      await findPayment(world, payOrderId)
      await recovered(world, without, backup, () =>
        eventually('the payin paid', async () => (await world.db.run(payinState, {}))[0]?.state === 'paid'),
      )
      return 1
    }),
}

const payinState = sql<object, { state: string }>`select state from payins`

/** A payer's act, or time's, on a payin (devkit/sandbox/README.md, "The checkout page"). */
async function press({ sandbox }: World, payOrderId: string, button: string): Promise<void> {
  const headers = { accept: 'application/json' }
  const pressed = await fetch(`${sandbox.url}/checkout/${payOrderId}/${button}`, { method: 'POST', headers })
  if (!pressed.ok) throw new Error(`${button} was answered ${pressed.status}`)
}

/** Another client than payoutd reports the unreported payment to the gateway. */
async function findPayment({ config, sandbox, merchants }: World, payOrderId: string): Promise<void> {
  const lines = await payinsAt(sandbox, merchants)
  const { untoldUtrs: [utr = ''] = [] }: Partial<PayinLine> =
    lines.find((line) => line.payOrderId === payOrderId) ?? {}
  const { baseUrl, mchId, key, dialect } = config.merchants.get(MERCHANT_ID) as Merchant
  const client = createGatewayClient({ baseUrl, mchId, key, dialect, connections: 1, clock: systemClock })
  const { kind } = await client.payinRecover({ payOrderId, utr })
  await client.close()
  if (kind !== 'submitted') throw new Error(`the payment was ${kind}`)
}

/**
 * Restores on the same server, so that no connection shows it, under a running payoutd, which goes on from its
 * position in the commands. Nothing may send what the ledger has left.
 */
export const setBackUnderWay: Scene = {
  name: 'Postgres: restored to an earlier state on the same server while payoutd runs, at a gateway that pays twice',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', sandbox: { settleMs: SETTLE_MS } }, async (world) => {
      await start(world, without)
      await eachIn(world, await world.ask(4, [MIX['never called back']]), 'processing')
      const backup = await backedUp(world)
      await start(world, without)
      const forgotten = await world.ask(8, [MIX.usual])
      await eachIn(world, forgotten, 'processing')
      await allPublished(world)
      await backup.restore()
      const later = await world.ask(2, [MIX.usual])
      await eventually('all commands read again', async () => {
        const kept = new Set((await world.kept()).map(({ payoutId }) => payoutId))
        return [...forgotten, ...later].every((payoutId) => kept.has(payoutId))
      })
      await commandDone(world, ['recover', ...WHO, '--rate', '200', '--yes'], without)
      await eachIn(world, later, 'processing')
      await drive(world, SETTLE_MS)
      return 1
    }),
}
