import { eventually } from '../../src/platform/eventually.fixture.ts'
import { MERCHANT_ID } from '../merchants.ts'
import { drive } from '../sandbox-faults.ts'
import { inWorld, PROMISED, type Scene, start } from '../scenes.ts'
import { MIX } from '../world.ts'

const ONE = [{ merchantId: MERCHANT_ID }]
/** Nobody is called back before the sandbox's clock is put forward. */
const SETTLE_MS = 3_600_000
const BY = ['--by', 'Meera Iyer', '--reason', 'we change the account', '--yes']

/** The orders are at the former account; at the new one, which finds its own, they are absent. */
export const accountChanged: Scene = {
  name: 'another gateway account while applies are in doubt, at a gateway that pays twice',
  play: (bench, without) =>
    inWorld(bench, { sandbox: { settleMs: SETTLE_MS }, dialect: PROMISED }, async (world) => {
      // So that nobody asks before the change.
      const first = await start(world, without, { roles: 'intake,dispatch,relay' })
      const lost = [MIX['taken, never answered'], MIX['taken, HTTP 500'], MIX['taken, reset']]
      await world.ask(6, lost, ONE)
      await eventually('all of them in doubt', async () => {
        const kept = await world.kept()
        return kept.length === 6 && kept.every(({ state }) => state === 'unknown')
      })
      await first.kill()
      await world.changeAccount(MERCHANT_ID)
      const { exit, proc } = await world.command(['merchant', 'adopt', MERCHANT_ID, ...BY])
      if (exit !== 0) throw new Error(`adopt ended with ${exit}: ${proc.tail()}`)
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
