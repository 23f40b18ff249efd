import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { layoutOf } from '../../devkit/local/servers/layout.ts'
import { startStack } from '../../devkit/local/servers/stack.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { type Bench, type Row, rowOf, withWrong } from '../matrix.ts'
import { Standby } from '../world/standby.ts'
import { Wire } from '../world/wire.ts'
import { MIX, World } from '../world/world.ts'

const RECOVER = ['recover', '--by', 'Asha Rao', '--reason', 'the primary was lost', '--rate', '200', '--yes']
/** Send each only once to a gateway that accepts it: a second apply would pay again. */
const ACCOUNTS = [MIX.usual, MIX['never called back'], MIX['called back twice'], MIX.fails]

const fenced = sql<object, { reason: string }>`
  select recovering_reason as reason from merchants where recovering_since is not null`
const known = sql<object, { count: number }>`select count(*)::int as count from payouts where attempt > 0`

/**
 * Kills the primary while payoutd sends payouts; an asynchronous standby that lacks its last seconds takes over at
 * the same address. payoutd keeps running, at a gateway that pays an order as often as asked.
 */
export async function* failover(bench: Bench): AsyncGenerator<Row> {
  const name = 'Postgres: primary killed, and a standby promoted that lacks the last commits'
  bench.tell(name)
  const layout = layoutOf(mkdtempSync(path.join(tmpdir(), 'payoutd-failover-')))
  const { kafkaBrokers, schemaRegistryUrl } = bench.stack
  const primary = await startStack({
    ...{ dir: layout.dir, given: { kafkaBrokers, schemaRegistryUrl }, sandbox: false, ports: 'any' },
    log: bench.log,
  })
  const wire = await Wire.to(new URL(primary.databaseUrl).host)
  const address = new URL(primary.databaseUrl)
  address.host = `127.0.0.1:${wire.port}`
  const stack = { ...bench.stack, databaseUrl: address.href }
  // So that only a part of the queue is sent when the standby takes over.
  const world = await World.open({
    ...{ ...bench, stack, name: 'failover', eachMerchant: { ratePerSecond: 10 }, review: 'any' },
  })
  let standby: Standby | undefined
  try {
    await (await world.start()).up()
    await world.ask(8, ACCOUNTS)
    await world.verdict({ signal: bench.signal })
    standby = await Standby.of(primary.databaseUrl, path.join(layout.data, 'postgres'))
    standby.cutOff()
    await world.ask(40, ACCOUNTS)
    await eventually('a part sent', async () => (await world.gateway.orders()).length >= 24)
    await primary.kill('postgres')
    await standby.promote()
    wire.turnTo(new URL(standby.url).host)
    const wrong: string[] = []
    await eventually('the fence', () =>
      world.db.run(fenced, {}).then(
        ({ length }) => length > 0,
        () => false,
      ),
    )
    const [forgotten] = await world.db.run(known, {})
    if (forgotten?.count !== 8)
      wrong.push(`the standby lacked nothing: it knew of ${forgotten?.count} payouts`)
    await world.ask(6, ACCOUNTS)
    const { exit, proc } = await world.command(RECOVER)
    if (exit !== 0) wrong.push(`payoutd recover ended with ${exit}: ${proc.tail()}`)
    const verdict = await world.verdict({ signal: bench.signal })
    const note = `${verdict.inReview} for a person to decide`
    yield withWrong(rowOf({ section: 'failover', name, runs: 1, faults: 1, note }, verdict), wrong)
  } finally {
    await world.close()
    await standby?.stop()
    await wire.close()
    await primary.stop()
    rmSync(layout.dir, { recursive: true, force: true })
  }
}
