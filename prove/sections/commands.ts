import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parse } from 'csv-parse/sync'
import type { GatewayOrder } from '../../devkit/oracle/gateway-books.ts'
import { BY_PAYOUTD } from '../../src/ledger/evidence/proven-losses.ts'
import { raiseFence } from '../../src/ledger/sql/fence.ts'
import { topicNames } from '../../src/messages/topics.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import type { Crash } from '../crash.ts'
import { type Bench, type Row, rowOf } from '../matrix.ts'
import { allPoints, inWords, type Point } from '../points.ts'
import { aboutOrder, postCallback } from '../world/callback.ts'
import { furtherMerchants, MERCHANT_ID } from '../world/merchants.ts'
import { setFaults } from '../world/sandbox-faults.ts'
import { commandOf, MIX, World } from '../world/world.ts'

/** One merchant is enough for a person's acts. */
const ONE = [{ merchantId: MERCHANT_ID }]
const OF = ['--merchant', MERCHANT_ID]
const BY = ['--by', 'Meera Iyer', '--reason', 'tried by the prover']
const DECIDED = [...BY, '--yes']

/** A command, or a rare act of a running payoutd, and the crash points in it. */
type Act = {
  points: readonly Point['name'][]
  /** Does it, dies at the crash, and does it again. Throws if the result is wrong. */
  try: (world: World, crash: Crash) => Promise<void>
}

/** Runs a command, which dies, and runs it again, which must work. */
const command = (
  points: readonly Point['name'][],
  argsOf: (world: World) => Promise<readonly string[]>,
): Act => ({
  points,
  async try(world, crash) {
    const args = await argsOf(world)
    const { exit } = await world.command(args, crash)
    if (exit !== 'SIGKILL') throw new Missed(`${args.slice(0, 2).join(' ')} ended with ${exit}`)
    const again = await world.command(args)
    // A second run may say that it was done before: that is neither a success nor a stack trace.
    if (/\n\s+at /.test(again.proc.tail(30))) throw new Error(`${args.join(' ')}: ${again.proc.tail(30)}`)
  },
})

class Missed extends Error {}

/** As time does a minute after the owner of a turn dies. */
const endTurns = sql<object>`delete from kept_callback_turns`
const anomalyIds = sql<{ kind: string }, { anomalyId: string; payoutId: string }>`
  select anomaly_id::text, payout_id from anomalies where kind = ${'kind'} and acknowledged_at is null`

const isIn = (world: World, payoutId: string, state: string): Promise<void> =>
  eventually(`${payoutId} in ${state}`, async () =>
    (await world.kept()).some((kept) => kept.payoutId === payoutId && kept.state === state),
  )

let files = 0
const accountOf = (number: number): string => `50109${String(number).padStart(8, '0')}`

/** A payroll of a few new rows. */
function payroll(world: World): string {
  const file = path.join(world.dir, `payroll-${++files}.csv`)
  const rows = Array.from({ length: 8 }, (_, i) => {
    const { accountNo, amount } = commandOf(files * 100 + i, accountOf(files * 100 + i))
    return `R${files}-${i},Asha Rao,${accountNo},HDFC0001234,${amount / 100n}`
  })
  writeFileSync(file, `reference,account_name,account_no,ifsc,amount\n${rows.join('\n')}\n`)
  return file
}

const payins = (points: readonly Point['name'][]): Act => ({
  points,
  async try(world, crash) {
    const idempotencyKey = randomBytes(6).toString('hex')
    const args = [
      'payin',
      'create',
      ...OF,
      '--amount',
      '50000',
      '--idempotency-key',
      idempotencyKey,
      ...BY,
      '--json',
    ]
    const { exit } = await world.command(args, crash)
    if (exit !== 'SIGKILL') throw new Missed(`payin create ended with ${exit}`)
    await world.command(args)
  },
})

async function createdPayin(world: World): Promise<string> {
  const idempotencyKey = randomBytes(6).toString('hex')
  const { proc } = await world.command([
    ...['payin', 'create', ...OF, '--amount', '50000', '--idempotency-key', idempotencyKey],
    ...[...BY, '--json'],
  ])
  const { payinId } = JSON.parse(proc.tail(200).slice(proc.tail(200).indexOf('{'))) as { payinId: string }
  return payinId
}

const putInReview = sql<{ payinId: string }>`
  update payins set state = 'review', reason = 'not-found', due_at = now() + interval '1 hour' where payin_id = ${'payinId'}`

const DEEDS: readonly Act[] = [
  {
    points: ['ingest'],
    async try(world, crash) {
      const file = payroll(world)
      const args = ['ingest', file, ...OF, '--batch', path.basename(file, '.csv'), '--yes']
      const { exit } = await world.command(args, crash)
      if (exit !== 'SIGKILL') throw new Missed(`ingest ended with ${exit}`)
      const again = await world.command(args)
      if (again.exit !== 0) throw new Error(`ingest again ended with ${again.exit}: ${again.proc.tail()}`)
      const rows = parse(readFileSync(`${file}.payouts.csv`, 'utf8'), { columns: true, bom: true }) as {
        payoutId: string
        row: string
      }[]
      world.expect(
        rows.map(({ payoutId, row }) => {
          const number = Number(files) * 100 + Number(row) - 2
          return { ...commandOf(number, accountOf(number)), payoutId }
        }),
      )
    },
  },
  command(['pause merchant'], async (world) => {
    await world.command(['resume', MERCHANT_ID, ...DECIDED])
    return ['pause', MERCHANT_ID, ...DECIDED]
  }),
  command(['cancel payouts'], async (world) => {
    const [payoutId = ''] = await world.ask(1, [MIX.usual], ONE)
    await isIn(world, payoutId, 'queued')
    return ['payout', 'cancel', payoutId, ...OF, ...DECIDED]
  }),
  command(['cancel batch'], async () => ['payout', 'cancel', '--batch', 'withdrawn', ...OF, ...DECIDED]),
  command(['resume merchant'], async (world) => {
    await world.command(['pause', MERCHANT_ID, ...DECIDED])
    return ['resume', MERCHANT_ID, ...DECIDED]
  }),
  command(['release payouts'], async (world) => {
    const [twin] = await world.ask(1, [MIX.usual], ONE)
    const number = Number(twin?.slice(1))
    const again = {
      ...commandOf(number, `${MIX.usual}${1_000_000 + number}`),
      payoutId: `${twin}-again`,
      batchId: 'december',
    }
    await eventually('the first of the two', async () =>
      (await world.kept()).some(({ payoutId }) => payoutId === twin),
    )
    world.expect([again])
    await world.publish([again])
    await isIn(world, again.payoutId, 'held')
    return ['payout', 'release', again.payoutId, ...OF, ...DECIDED]
  }),
  command(['resolve payout'], async (world) => {
    const number = world.asked.length + 1
    const expires = {
      ...commandOf(number, `${MIX['never called back']}${1_000_000 + number}`),
      deadline: Date.now() + 3_000,
    }
    await setFaults(world, [{ fault: '500', operation: 'queryPayout', percent: 100 }])
    world.expect([expires])
    await world.publish([expires])
    const { payoutId } = expires
    await isIn(world, payoutId, 'review')
    const { orderNo } = (await world.kept()).find((kept) => kept.payoutId === payoutId) ?? {}
    const { utr } = (await world.gateway.orders()).find(({ mchOrderNo }) => mchOrderNo === orderNo) ?? {}
    await setFaults(world, [])
    return ['payout', 'resolve', payoutId, '--paid', '--utr', utr ?? '', ...OF, ...DECIDED]
  }),
  command(['resolve payin'], async (world) => {
    const payinId = await createdPayin(world)
    await world.db.run(putInReview, { payinId })
    return ['payin', 'resolve', payinId, '--failed', ...OF, ...DECIDED]
  }),
  command(['reverse payout'], async (world) => [
    'payout',
    'reverse',
    (await contradiction(world)).payoutId,
    ...OF,
    ...DECIDED,
  ]),
  command(['acknowledge anomalies'], async (world) => [
    'anomaly',
    'acknowledge',
    (await contradiction(world)).anomalyId,
    ...OF,
    ...DECIDED,
  ]),
  command(
    ['begin reconciliation', 'list payouts to reconcile', 'keep reconciled payout', 'finish reconciliation'],
    async () => reconcile(),
  ),
  command(['ask again'], async () => [...reconcile(), '--settle', ...DECIDED]),
  command(['keep replays', 'replay'], async (world) => {
    await world.publishBytes(randomBytes(20))
    const { db } = world
    await eventually('a dead letter', async () => (await db.run(outbox, {})).length === 0, 10_000)
    await delay(500)
    return ['dlq', 'replay', '--all', ...DECIDED]
  }),
  {
    points: ['set refused aside'],
    async try(world, crash) {
      await world.killAll()
      const proc = await world.start({ crash })
      await insertRefused(world)
      await eventually('the crash', () => proc.isGone, 15_000).catch(() => undefined)
      if (!proc.isGone) throw new Missed('was not reached')
      await (await world.start()).up()
      await setAside(world)
    },
  },
  command(['retry messages'], async (world) => {
    await insertRefused(world)
    await setAside(world)
    return ['outbox', 'retry', '--all', ...DECIDED]
  }),
  {
    points: ['keep refused evidence'],
    async try(world, crash) {
      await world.killAll()
      await world.db.run(refusePaid, {})
      const proc = await world.start({ crash })
      await proc.up()
      await world.ask(1, [MIX.usual], ONE)
      await eventually('the crash', () => proc.isGone, 20_000).catch(() => undefined)
      await world.killAll()
      await world.db.run(takePaid, {})
      if (!world.reached().has(inWords(crash as Point))) throw new Missed('was not reached')
      await (await world.start()).up()
    },
  },
  {
    points: ['keep callback', 'forget kept callbacks'],
    async try(world, crash) {
      const order = await paidOrder(world)
      const keeps = crash.name === 'keep callback'
      const call = () => postCallback(world, aboutOrder(order)).catch(() => 0)
      await world.killAll()
      world.know(world.merchants.filter(({ merchantId }) => merchantId !== MERCHANT_ID))
      const without = await world.start(keeps ? { crash } : {})
      await without.up()
      await call()
      if (keeps) {
        await eventually('the crash', () => without.isGone)
        await (await world.start()).up()
        await call()
      }
      await world.killAll()
      await world.db.run(endTurns, {})
      world.know(world.merchants)
      const back = await world.start(keeps ? {} : { crash })
      if (!keeps) {
        await eventually('the crash', () => back.isGone, 15_000)
        await world.db.run(endTurns, {})
        await (await world.start()).up()
      }
      await eventually(
        'what was kept to be taken up',
        async () => (await world.db.run(kept, {})).length === 0,
      )
    },
  },
  {
    points: ['take lost callbacks', 'settle lost callback'],
    async try(world, crash) {
      const order = await paidOrder(world)
      await world.killAll()
      await world.db.run(loseCallback, { merchantId: MERCHANT_ID, orderNo: order.mchOrderNo })
      const proc = await world.start({ crash })
      await eventually('the crash', () => proc.isGone, 15_000)
      await world.db.run(askAgainNow, {})
      await (await world.start()).up()
      await eventually(
        'the order of a lost callback to be asked about',
        async () => (await world.db.run(lost, {})).length === 0,
      )
    },
  },
  {
    points: ['release held'],
    async try(world, crash) {
      await world.killAll()
      const lacking = await world.start({ roles: 'dispatch' })
      await lacking.up()
      world.settings.ENCRYPTION_KEYS = withFurtherKey(world)
      await world.start({ roles: 'intake' })
      const [payoutId = ''] = await world.ask(1, [MIX.usual], ONE)
      await isIn(world, payoutId, 'held')
      await world.killAll()
      await dieAndStartAgain(world, crash)
    },
  },
  {
    points: ['require settings in force'],
    async try(world, crash) {
      await world.killAll()
      await world.addMerchants(furtherMerchants(++newcomers).slice(-1))
      await dieAndStartAgain(world, crash)
      world.know(world.merchants)
    },
  },
  {
    points: ['adopt settings'],
    async try(world, crash) {
      await world.killAll()
      const file = world.settings.GATEWAY_DIALECT as string
      const { sendTimeoutMs, ...dialect } = JSON.parse(readFileSync(file, 'utf8'))
      const other = { ...sendTimeoutMs, connect: sendTimeoutMs.connect + 1 }
      writeFileSync(file, JSON.stringify({ ...dialect, sendTimeoutMs: other }))
      const { exit } = await world.command(['merchant', 'adopt', MERCHANT_ID, ...DECIDED], crash)
      if (exit !== 'SIGKILL') throw new Missed(`merchant adopt ended with ${exit}`)
      for (const { merchantId } of world.merchants) {
        const again = await world.command(['merchant', 'adopt', merchantId, ...DECIDED])
        if (again.exit !== 0)
          throw new Error(`merchant adopt again ended with ${again.exit}: ${again.proc.tail()}`)
      }
      await (await world.start()).up()
    },
  },
  {
    points: ['lower fence'],
    async try(world, crash) {
      const fence = { merchantId: MERCHANT_ID, by: BY_PAYOUTD, reason: 'another server took over' }
      await world.db.run(raiseFence, { ...fence, feeEstimate: 0n })
      await world.db.run(byOneFailover, {})
      const args = ['recover', '--nothing-lost', ...OF, ...DECIDED]
      const { exit } = await world.command(args, crash)
      if (exit !== 'SIGKILL') throw new Missed(`recover ended with ${exit}`)
      const { proc } = await world.command(args)
      if ((await world.db.run(fenced, {})).length > 0)
        throw new Error(`the fence still stands: ${proc.tail()}`)
    },
  },
  payins(['intend payin', 'payinCreate', 'record creation']),
  {
    points: ['take due payins', 'settle payins', 'payinQuery', 'leave shards', 'begin partition'],
    async try(world, crash) {
      await world.killAll()
      if (crash.name === 'begin partition') await world.db.run(forgetPlaces, {})
      const proc = await world.start({ crash })
      if (crash.name === 'leave shards') {
        await proc.up()
        await delay(500)
        proc.signal('SIGTERM')
      } else if (crash.name !== 'begin partition') {
        await proc.up()
        await world.command([
          'payin',
          'create',
          ...OF,
          '--amount',
          '50000',
          '--idempotency-key',
          randomBytes(6).toString('hex'),
        ])
      }
      await eventually('the crash', () => proc.isGone, 15_000).catch(() => undefined)
      if (!world.reached().has(inWords(crash as Point))) throw new Missed('was not reached')
      await proc.kill()
      await (await world.start()).up()
    },
  },
  {
    points: ['intend payin recovery', 'recover payin', 'payinRecovery'],
    async try(world, crash) {
      const payinId = await createdPayin(world)
      const args = ['payin', 'recover', payinId, ...OF, ...BY, '--utr', '000000000000']
      const { exit } = await world.command(args, crash)
      if (exit !== 'SIGKILL') throw new Missed(`payin recover ended with ${exit}`)
      await world.command(args)
    },
  },
  {
    points: ['rotate keys', 'rotate other seals', 'retire keys'],
    async try(world, crash) {
      world.settings.ENCRYPTION_KEYS = withFurtherKey(world)
      await world.killAll()
      await (await world.start()).up()
      const { exit } = await world.command(['keys', 'rotate', '--retire', ...DECIDED], crash)
      if (exit !== 'SIGKILL') throw new Missed(`keys rotate ended with ${exit}`)
      const again = await world.command(['keys', 'rotate', '--retire', ...DECIDED])
      if (again.exit !== 0)
        throw new Error(`keys rotate again ended with ${again.exit}: ${again.proc.tail()}`)
    },
  },
]
async function dieAndStartAgain(world: World, crash: Crash): Promise<void> {
  const proc = await world.start({ crash })
  await eventually('the crash', () => proc.isGone, 15_000)
  await (await world.start()).up()
}

let newcomers = 0
let rotations = 0

/** The world's keys plus a new one, which seals from then on. */
const withFurtherKey = ({ settings }: World): string =>
  `${settings.ENCRYPTION_KEYS},${2 + (rotations++ % 200)}:${randomBytes(32).toString('base64')}`

const reconcile = () => {
  const from = new Date(Date.now() - 3_600_000).toISOString()
  return ['reconcile', ...OF, '--from', from, '--to', new Date().toISOString(), '--rate', '500']
}

/** A database that refuses the gateway's reports, and later accepts them again. */
const refusePaid = sql<object>`alter table payouts add constraint refused check (state <> 'paid') not valid`
const takePaid = sql<object>`alter table payouts drop constraint refused`

const kept = sql<object>`select 1 from kept_callbacks`

const loseCallback = sql<{ merchantId: string; orderNo: string }>`
  insert into lost_callbacks (merchant_id, kind, order_no) values (${'merchantId'}, 'payout', ${'orderNo'})`
const askAgainNow = sql<object>`update lost_callbacks set ask_at = now()`
const lost = sql<object>`select 1 from lost_callbacks`

const byOneFailover = sql<object>`update merchants set recovering_one_step = true where recovering_since is not null`
const fenced = sql<object>`select 1 from merchants where recovering_since is not null`

const insertLarge = sql<{ topic: string; eventId: string; value: Buffer }>`
  insert into outbox (shard, topic, keys, event_ids, types, contents, headers, bytes)
  values (0, ${'topic'}, '{acme:large}', array[${'eventId'}::uuid], '{in.payoutd.PayoutEvent}', array[${'value'}::bytea],
          array[null::jsonb], octet_length(${'value'}::bytea))`
const refused = sql<object>`select 1 from outbox_refused`

/** Queues a message that Kafka refuses, for the relay to find. */
async function insertRefused({ db, config }: World): Promise<void> {
  const { events: topic } = topicNames(config.topicPrefix)
  await db.run(insertLarge, { topic, eventId: randomUUID(), value: Buffer.alloc(2_000_000) })
}

const setAside = ({ db }: World): Promise<void> =>
  eventually('what Kafka refuses put aside', async () => (await db.run(refused, {})).length > 0)

async function paidOrder({ gateway }: World): Promise<GatewayOrder> {
  let paid: GatewayOrder | undefined
  await eventually('an order that is paid', async () => {
    paid = (await gateway.orders()).find(
      ({ mchOrderNo, status }) => status === 2 && gateway.ownerOf(mchOrderNo).merchantId === MERCHANT_ID,
    )
    return paid !== undefined
  })
  return paid as GatewayOrder
}

/** Makes intake read everything again. */
const forgetPlaces = sql<object>`delete from intake_offsets`
const outbox = sql<object, { position: bigint }>`select position from outbox limit 1`

async function contradiction(world: World): Promise<{ anomalyId: string; payoutId: string }> {
  await world.ask(1, ['9999000012'], ONE)
  let found: { anomalyId: string; payoutId: string } | undefined
  await eventually('a contradiction', async () => {
    found = (await world.db.run(anomalyIds, { kind: 'contradiction' })).at(-1)
    return found !== undefined
  })
  return found as { anomalyId: string; payoutId: string }
}

/** Points that only commands pass, and those that payoutd passes rarely. */
export const COMMAND_POINTS = DEEDS.flatMap(({ points }) => points)

/** For every such point: SIGKILL there, the same command again, and a check of the final result. */
export async function* commands(bench: Bench): AsyncGenerator<Row> {
  if (bench.quick) return
  const world = await World.open({ ...bench, name: 'commands', sandbox: { latencyMs: 5 } })
  const wrong: string[] = []
  let runs = 0
  try {
    await (await world.start()).up()
    await world.ask(13)
    for (const act of DEEDS) {
      for (const point of allPoints().filter(({ name }) => act.points.includes(name))) {
        bench.signal.throwIfAborted()
        bench.tell(inWords(point))
        runs++
        await act.try(world, { ...point, nth: 1, how: 'kill' }).catch((error: Error) => {
          wrong.push(`${inWords(point)}: ${error.message}`)
        })
      }
    }
    const row = rowOf(
      {
        section: 'crash points',
        name: 'killed in operator commands and at rarely reached points',
        runs,
        faults: runs,
      },
      await world.verdict(),
    )
    yield { ...row, other: row.other + wrong.length, discrepancies: [...row.discrepancies, ...wrong] }
  } finally {
    await world.close()
  }
}
