import { setTimeout as delay } from 'node:timers/promises'
import type { Consumer, Producer } from 'kafkajs'
import pg from 'pg'
import type { EvidenceSource, Exchange, OrderReport } from '../../src/domain/evidence.ts'
import type { State } from '../../src/domain/payout/states.ts'
import { grouped } from './grouped.ts'
import { cloudEvent, openParts, type Parts, type Row } from './parts.ts'

/*
 * A pipeline on a job queue, as a team that knows its queue tunes it: commands are taken in by the batch with their
 * jobs in one transaction, intent and answers are stored in groups, callbacks too, and an outbox is published in
 * batches.
 *
 * For a payout that goes well it does the same work as payoutd, with payoutd's own parts where the comparison is not
 * about them (`parts.ts`). It commits its intent before it sends.
 *
 * What it leaves out makes it faster than an honest rival: it never resumes what a crash left, sends no queries when
 * a callback is missing, looks for no duplicates, respects neither balance nor rate, and fences nothing.
 */

/** A job queue in the same database. */
export type Queue = {
  /** Adds a job for each order number, in the transaction of `client`. */
  add(client: pg.PoolClient, orderNos: string[]): Promise<unknown>
  /** Calls `intend` before and `pay` for each job; whether by batches is the queue's way. */
  work(payer: Payer): Promise<unknown>
}

export type Payer = {
  /** Commits the intent to send these; resolves with those that nobody sent before. */
  intend(orderNos: string[]): Promise<Row[]>
  /** Calls the gateway and waits until the answers are stored. */
  pay(rows: Row[]): Promise<unknown>
}

type Transition = { row: Row; from: State | null; source: EvidenceSource; exchange: Exchange | null }
type Answer = { orderNo: string; exchange?: Exchange } & Partial<Pick<Row, 'agentpayOrderId' | 'fee' | 'utr'>>

const CONNECTIONS = 16
const COMMANDS_AT_ONCE = 500
const MESSAGES_AT_ONCE = 1_000
const RELAY_PAUSE_MS = 50

const INSERT = `
  insert into payouts (merchant_id, payout_id, batch_id, order_no, amount, currency, state, version, sealed)
  select m, p, b, o, a, c, 'queued', 1, s
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bytea[]) as t(m, p, b, o, a, c, s)
  on conflict do nothing
  returning order_no`

/** In the order of the numbers, which is the order of the locks. */
const MOVE = `
  update payouts p
  set state = $5, version = p.version + 1, agentpay_order_id = coalesce(t.agentpay_order_id, p.agentpay_order_id),
      fee = coalesce(t.fee, p.fee), utr = coalesce(t.utr, p.utr), updated_at = now()
  from unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) as t(order_no, agentpay_order_id, fee, utr)
  where p.order_no = t.order_no and p.state = any($6::text[])
  returning p.merchant_id as "merchantId", p.payout_id as "payoutId", p.batch_id as "batchId", p.order_no as "orderNo", p.amount,
    p.currency, p.state, p.version, p.agentpay_order_id as "agentpayOrderId", p.fee, p.utr, p.sealed, old.state as "from"`

const TELL = `
  with told as (
    insert into history (merchant_id, payout_id, version, from_state, to_state, source, exchange)
    select * from unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::text[], $6::text[], $7::jsonb[])
  )
  insert into outbox (topic, key, event_id, type, value)
  select * from unnest($8::text[], $9::text[], $10::text[], $11::text[], $12::bytea[])`

const NEXT = 'select id, topic, key, event_id as "eventId", type, value from outbox order by id limit $1'
const FORGET = 'delete from outbox where id = any($1::bigint[])'

/** Runs the pipeline until SIGTERM. */
export async function runPipeline(
  name: string,
  openQueue: (given: { pool: pg.Pool; inFlight: number }) => Promise<Queue>,
): Promise<void> {
  const parts = await openParts(name, 'pipeline.sql')
  const { config, log } = parts
  const pool = openPool(config)
  const queue = await openQueue({ pool, inFlight: config.inFlight })
  const store = storeIn(pool, parts)
  const record = grouped(store.answers, { most: 500, waitMs: 5, atOnce: 2 })
  const settle = grouped(store.reports, { most: 500, waitMs: 2, atOnce: 2 })
  const callbackUrl = await parts.serveCallbacks(settle)
  void relay(pool, parts, name).catch((error: unknown) => {
    log.error({ err: error }, 'relay failed')
    process.exit(1)
  })
  await queue.work({
    intend: store.intents,
    pay: (rows) =>
      Promise.all(
        rows.map(async (row) => {
          const answer = await parts.apply(row, callbackUrl)
          if (answer) await record({ ...answer, orderNo: row.orderNo })
        }),
      ),
  })
  await takeIn(parts, (rows) => store.accepted(rows, queue))
  log.info({}, `${name} is up`)
}

const INT8 = 20

export const openPool = ({ databaseUrl }: Parts['config']) =>
  new pg.Pool({
    connectionString: databaseUrl,
    max: CONNECTIONS,
    // Rows are locked in the order of the numbers given, and plans made while tables are small stay right.
    options: '-c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan',
    types: { getTypeParser: (oid, format) => (oid === INT8 ? BigInt : pg.types.getTypeParser(oid, format)) },
  })

export function storeIn(pool: pg.Pool, { messagesOf }: Parts) {
  async function tell(client: pg.PoolClient, steps: readonly Transition[]): Promise<void> {
    const messages = steps.flatMap(({ row, from, source }) => messagesOf(row, from, source))
    await client.query({
      name: 'tell',
      text: TELL,
      values: [
        steps.map(({ row }) => row.merchantId),
        steps.map(({ row }) => row.payoutId),
        steps.map(({ row }) => row.version),
        steps.map(({ from }) => from),
        steps.map(({ row }) => row.state),
        steps.map(({ source }) => source),
        steps.map(({ exchange }) => exchange && JSON.stringify(exchange)),
        messages.map(({ topic }) => topic),
        messages.map(({ key }) => key),
        messages.map(({ eventId }) => eventId),
        messages.map(({ type }) => type),
        messages.map(({ value }) => value),
      ],
    })
  }

  /** Moves those that are in one of the states `from`; resolves with them. */
  const move = (answers: Answer[], to: State, from: State[], source: EvidenceSource) =>
    inTransaction(pool, async (client) => {
      const sorted = answers.toSorted(byOrderNo)
      const { rows } = await client.query<Row & { from: State }>({
        name: 'move',
        text: MOVE,
        values: [
          sorted.map(({ orderNo }) => orderNo),
          sorted.map(({ agentpayOrderId }) => agentpayOrderId ?? null),
          sorted.map(({ fee }) => fee ?? null),
          sorted.map(({ utr }) => utr ?? null),
          to,
          from,
        ],
      })
      const exchanges = new Map(sorted.map(({ orderNo, exchange }) => [orderNo, exchange ?? null]))
      const steps = rows.map((row) => {
        const exchange = exchanges.get(row.orderNo) ?? null
        return { row, from: row.from, source, exchange }
      })
      if (steps.length > 0) await tell(client, steps)
      return rows
    })

  return {
    /** Stores new commands and adds their jobs. Ignores repeats. */
    accepted: (rows: Row[], queue: Queue) =>
      inTransaction(pool, async (client) => {
        const { rows: added } = await client.query<{ order_no: string }>({
          name: 'insert',
          text: INSERT,
          values: [
            rows.map(({ merchantId }) => merchantId),
            rows.map(({ payoutId }) => payoutId),
            rows.map(({ batchId }) => batchId),
            rows.map(({ orderNo }) => orderNo),
            rows.map(({ amount }) => amount),
            rows.map(({ currency }) => currency),
            rows.map(({ sealed }) => sealed),
          ],
        })
        const isNew = new Set(added.map((row) => row.order_no))
        const steps = rows.flatMap((row): Transition[] =>
          isNew.has(row.orderNo) ? [{ row, from: null, source: 'COMMAND', exchange: null }] : [],
        )
        if (steps.length === 0) return
        await tell(client, steps)
        await queue.add(client, [...isNew])
      }),
    intents: (orderNos: string[]) =>
      move(
        orderNos.map((orderNo) => ({ orderNo })),
        'submitting',
        ['queued'],
        'COMMAND',
      ),
    answers: (answers: Answer[]) => move(answers, 'processing', ['submitting'], 'APPLY'),
    reports: (reports: OrderReport[]) => {
      const paid = reports.filter(({ status }) => status === 'success')
      const answers = paid.map((report) => ({ ...report, orderNo: report.mchOrderNo }))
      return move(answers, 'paid', ['submitting', 'processing'], 'CALLBACK')
    },
  }
}

const byOrderNo = (a: { orderNo: string }, b: { orderNo: string }) => (a.orderNo < b.orderNo ? -1 : 1)

async function inTransaction<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

/** Takes in commands by the batch; offsets are committed after them. Resolves once it has begun. */
export async function takeIn(
  { kafka, config, topics, rowOf }: Parts,
  accept: (rows: Row[]) => Promise<unknown>,
): Promise<Consumer> {
  const consumer = kafka.consumer({ groupId: config.kafkaGroup, maxWaitTimeInMs: 50 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topics.commands], fromBeginning: true })
  await consumer.run({
    eachBatchAutoResolve: true,
    eachBatch: async ({ batch: { messages }, heartbeat }) => {
      for (let at = 0; at < messages.length; at += COMMANDS_AT_ONCE) {
        const chunk = messages.slice(at, at + COMMANDS_AT_ONCE)
        const rows = (await Promise.all(chunk.map(({ value }) => rowOf(value)))).filter(
          (row) => row !== undefined,
        )
        if (rows.length > 0) await accept(rows)
        await heartbeat()
      }
    },
  })
  return consumer
}

/** Publishes the outbox in order, and forgets what Kafka has. */
async function relay(pool: pg.Pool, { kafka }: Parts, source: string): Promise<never> {
  const producer = kafka.producer({ allowAutoTopicCreation: false })
  await producer.connect()
  for (;;) {
    const published = await publishSome(pool, producer, source)
    if (published < MESSAGES_AT_ONCE / 2) await delay(RELAY_PAUSE_MS)
  }
}

/** Resolves with how many messages it published. */
export async function publishSome(pool: pg.Pool, producer: Producer, source: string): Promise<number> {
  const { rows } = await pool.query({ name: 'next', text: NEXT, values: [MESSAGES_AT_ONCE] })
  if (rows.length === 0) return 0
  const byTopic = Map.groupBy(rows, ({ topic }) => topic as string)
  const topicMessages = [...byTopic].map(([topic, messages]) => ({
    topic,
    messages: messages.map((each) => ({
      key: each.key,
      value: each.value,
      headers: cloudEvent(each, source),
    })),
  }))
  await producer.sendBatch({ acks: -1, topicMessages })
  await pool.query({ name: 'forget', text: FORGET, values: [rows.map(({ id }) => id)] })
  return rows.length
}
