import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { inWorld, PROMISED, type Scene, start } from '../scenes.ts'
import { MERCHANT_ID } from '../world/merchants.ts'
import { drive, findNothing, setFaults } from '../world/sandbox-faults.ts'
import { MIX, type World } from '../world/world.ts'

const ONE = [{ merchantId: MERCHANT_ID }]
/** No callback comes before the sandbox's clock is moved forward. */
const SETTLE_MS = 3_600_000
const BY = ['--by', 'Meera Iyer', '--reason', 'the settings were wrong', '--yes']

async function adopt(world: World, merchantId: string): Promise<void> {
  const { exit, proc } = await world.command(['merchant', 'adopt', merchantId, ...BY])
  if (exit !== 0) throw new Error(`adopt ended with ${exit}: ${proc.tail()}`)
}

const inState = async (world: World, state: string): Promise<number> =>
  (await world.kept()).filter((kept) => kept.state === state).length

/** The orders are at the former account; the new one finds its own orders, but not these. */
export const accountChanged: Scene = {
  name: 'the gateway account changes while applies are unknown, at a gateway that pays twice',
  play: (bench, without) =>
    inWorld(bench, { sandbox: { settleMs: SETTLE_MS }, dialect: PROMISED }, async (world) => {
      // So that nothing queries before the change.
      const first = await start(world, without, { roles: 'intake,dispatch,relay' })
      const lost = [MIX['taken, never answered'], MIX['taken, HTTP 500'], MIX['taken, reset']]
      await world.ask(6, lost, ONE)
      await eventually('all of them in doubt', async () => {
        return (await inState(world, 'unknown')) === 6
      })
      await first.kill()
      await world.changeAccount(MERCHANT_ID)
      await adopt(world, MERCHANT_ID)
      await start(world, without)
      await world.ask(4, [MIX.usual], ONE)
      await eventually('an answer to every apply', async () => {
        const kept = await world.kept()
        return kept.length === 10 && kept.every(({ state }) => state === 'processing')
      })
      await drive(world, SETTLE_MS)
      return 6
    }),
}

/** The promise confirms absence and the payouts are queued; before payoutd sends them, the promise is withdrawn. */
export const promiseTakenBack: Scene = {
  name: 'the promise to refuse duplicates is withdrawn before payouts that it queued are sent, at a gateway that pays twice',
  play: (bench, without) =>
    inWorld(bench, { sandbox: { settleMs: SETTLE_MS }, dialect: PROMISED }, async (world) => {
      const sending = await start(world, without, { roles: 'intake,dispatch,relay' })
      await world.ask(1, [MIX.usual], ONE)
      await eventually('one that queries find', async () => (await inState(world, 'processing')) === 1)
      await findNothing(world, { new: true })
      await world.ask(4, [MIX['taken, never answered'], MIX['taken, reset']], ONE)
      await eventually('the others in doubt', async () => (await inState(world, 'unknown')) === 4)
      await sending.kill()
      const asking = await start(world, without, { roles: 'outcomes' })
      await eventually('their absence is believed', async () => (await inState(world, 'queued')) === 4)
      await asking.kill()
      await setFaults(world, [])
      world.speak({ duplicateApply: 'unknown' })
      for (const { merchantId } of world.merchants) await adopt(world, merchantId)
      await start(world, without)
      await eventually('nothing waits to be sent', async () => (await inState(world, 'queued')) === 0)
      await drive(world, SETTLE_MS)
      return 4
    }),
}
