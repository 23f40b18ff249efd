import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { OrderReport } from '../../src/domain/evidence.ts'
import { cpuSeconds } from '../testbed/processes.ts'
import { WARM_UP_PAYOUTS } from '../testbed/settings.ts'
import { openParts, type Row } from './parts.ts'
import { openPool, publishSome, type Queue, storeIn, takeIn } from './pipeline.ts'

/*
 * What the work of a payout costs at least: each part of it alone, in sets, with nothing beside it and no queue. Writes a line of
 * JSON for each part: the µs of CPU that it costs for each payout, by process.
 */

const STORED_AT_ONCE = 500
const CLAIMED_AT_ONCE = 128
const ANSWERS_AT_ONCE = 100
const IN_FLIGHT = 256
const NO_QUEUE: Queue = { add: async () => undefined, work: async () => undefined }

const count = Number(process.env.FLOORS_PAYOUTS)
const pids = JSON.parse(process.env.FLOORS_PIDS ?? '{}') as Record<string, number>
const parts = await openParts('floors', 'pipeline.sql')
const pool = openPool(parts.config)
const store = storeIn(pool, parts)
const producer = parts.kafka.producer({ allowAutoTopicCreation: false })
await producer.connect()
const called = new Map<string, OrderReport>()
const callbackUrl = await parts.serveCallbacks(async (report) => called.set(report.mchOrderNo, report))

const rows = await consume()
await each(rows.slice(0, WARM_UP_PAYOUTS), (_name, work) => work())
await each(rows.slice(WARM_UP_PAYOUTS), measure)
parts.log.info({}, 'floors is up')

async function consume(): Promise<Row[]> {
  const rows: Row[] = []
  const warm = Promise.withResolvers<void>()
  const all = Promise.withResolvers<void>()
  const consumer = await takeIn(parts, async (some) => {
    rows.push(...some)
    if (rows.length >= WARM_UP_PAYOUTS) warm.resolve()
    if (rows.length >= WARM_UP_PAYOUTS + count) all.resolve()
  })
  await warm.promise
  const already = rows.length
  await measure('consume, decode, check, seal', () => all.promise, WARM_UP_PAYOUTS + count - already)
  await consumer.disconnect()
  return rows
}

type Measure = (name: string, work: () => Promise<unknown>) => Promise<unknown>

async function each(rows: readonly Row[], measure: Measure): Promise<void> {
  const orderNos = rows.map(({ orderNo }) => orderNo)
  const answers: { orderNo: string; agentpayOrderId: string | null }[] = []
  await measure('store the command', () =>
    inTurn(rows, STORED_AT_ONCE, (some) => store.accepted(some, NO_QUEUE)),
  )
  await measure('commit the intent', () => inTurn(orderNos, CLAIMED_AT_ONCE, store.intents))
  await measure('apply and callback', async () => {
    const limit = pLimit(IN_FLIGHT)
    await limit.map(rows, async (row) => {
      const answer = await parts.apply(row, callbackUrl)
      if (!answer) throw new Error(`${row.payoutId} was not accepted`)
      answers.push({ ...answer, orderNo: row.orderNo })
    })
    while (orderNos.some((orderNo) => !called.has(orderNo))) await delay(20)
  })
  await measure('store the answer', () => inTurn(answers, ANSWERS_AT_ONCE, store.answers))
  const reports = orderNos.map((orderNo) => called.get(orderNo) as OrderReport)
  await measure('store the callback', () => inTurn(reports, ANSWERS_AT_ONCE, store.reports))
  await measure('publish', async () => {
    while ((await publishSome(pool, producer, 'floors')) > 0);
  })
}

async function inTurn<Item>(
  items: readonly Item[],
  size: number,
  work: (some: Item[]) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < items.length; from += size) await work(items.slice(from, from + size))
}

async function measure(name: string, work: () => Promise<unknown>, of = count): Promise<void> {
  const before = used()
  await work()
  const after = used()
  const each = Object.keys(after).map((of) => [of, (after[of] ?? 0) - (before[of] ?? 0)] as const)
  const micros = Object.fromEntries(each.map(([process, seconds]) => [process, (seconds * 1e6) / of]))
  console.log(JSON.stringify({ floor: name, micros }))
}

/** CPU seconds by process. */
function used(): Record<string, number> {
  const { user, system } = process.cpuUsage()
  const others = Object.entries(pids).map(([name, pid]) => [name, cpuSeconds(pid)])
  return { worker: (user + system) / 1e6, ...Object.fromEntries(others) }
}
