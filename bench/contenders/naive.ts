import pLimit from 'p-limit'
import type { EvidenceSource, Exchange, OrderReport } from '../../src/domain/evidence.ts'
import type { State } from '../../src/domain/payout/states.ts'
import { connectDatabase, sql, type Transaction } from '../../src/platform/postgres/postgres.ts'
import { cloudEvent, openParts, type Row } from './parts.ts'

/*
 * The naive way: what a decent engineer writes in an afternoon. KafkaJS `eachMessage`, p-limit around the calls,
 * one transaction for each step of each payout, and a send to Kafka for each step's message.
 *
 * For a payout that goes well it does the same work as payoutd, and uses payoutd's own parts where the comparison
 * is not about them: gateway client, signature, sealed bank details, Avro messages, prepared statements. It commits
 * its intent before it sends, so a crash does not make it pay twice.
 *
 * What it leaves out makes it faster than an honest rival: it never resumes what a crash left, sends no queries
 * when a callback is missing, respects neither balance nor rate, loses the messages of what it committed just
 * before a crash, and takes the whole backlog into memory.
 */

const PARTITIONS_AT_ONCE = 6
const DATABASE_CONNECTIONS = 16

/** The result of one step of a payout. */
type Step = { to: State; source: EvidenceSource; exchange: Exchange | null } & Partial<
  Pick<Row, 'agentpayOrderId' | 'fee' | 'utr'>
>

const columns = {
  fragment: `merchant_id, payout_id, batch_id, order_no, amount, currency, state, version, agentpay_order_id, fee,
    utr, sealed`,
}

const insertPayout = sql<Omit<Row, 'agentpayOrderId' | 'fee' | 'utr'>, Row>`
  insert into payouts (merchant_id, payout_id, batch_id, order_no, amount, currency, state, version, sealed)
  values (${'merchantId'}, ${'payoutId'}, ${'batchId'}, ${'orderNo'}, ${'amount'}, ${'currency'}, ${'state'},
          ${'version'}, ${'sealed'})
  on conflict do nothing
  returning ${columns}`

const lockPayout = sql<{ orderNo: string }, Row>`
  select ${columns} from payouts where order_no = ${'orderNo'} for update`

const updatePayout = sql<Pick<Row, 'merchantId' | 'payoutId' | 'state' | 'version'> & Partial<Row>>`
  update payouts
  set state = ${'state'}, version = ${'version'}, agentpay_order_id = ${'agentpayOrderId'}, fee = ${'fee'},
      utr = ${'utr'}, updated_at = now()
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

type NaiveHistory = Pick<Row, 'merchantId' | 'payoutId' | 'version'>
const insertHistory = sql<
  NaiveHistory & { from: State | null; to: State; source: string; exchange: string | null }
>`
  insert into history (merchant_id, payout_id, version, from_state, to_state, source, exchange)
  values (${'merchantId'}, ${'payoutId'}, ${'version'}, ${'from'}, ${'to'}, ${'source'}, ${'exchange'})`

const parts = await openParts('naive', 'naive.sql')
const { config, topics, log, kafka } = parts
const db = connectDatabase({
  url: config.databaseUrl,
  connections: DATABASE_CONNECTIONS,
  applicationName: 'naive',
})
const producer = kafka.producer({ allowAutoTopicCreation: false })
const consumer = kafka.consumer({ groupId: config.kafkaGroup })
const limit = pLimit(config.inFlight)

await producer.connect()
const callbackUrl = await parts.serveCallbacks(settle)
await consumer.connect()
await consumer.subscribe({ topics: [topics.commands], fromBeginning: true })
log.info({}, 'naive is up')
await consumer.run({
  partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
  eachMessage: async ({ message }) => {
    const row = await accept(message.value)
    // Not awaited, so that the next message is read meanwhile: p-limit bounds the calls.
    if (row) limit(() => pay(row)).catch((error: unknown) => log.error({ err: error }, 'step failed'))
  },
})

/** Stores a new command, before its offset is committed. Ignores repeats and refused commands. */
async function accept(value: Buffer | null): Promise<Row | undefined> {
  const command = await parts.rowOf(value)
  if (!command) return undefined
  return db.transaction('test', async (tx) => {
    const [row] = await tx.run(insertPayout, command)
    if (row) await tell(tx, row, null, 'COMMAND', null)
    return row
  })
}

/** One payout, from its record to the gateway's answer. */
async function pay(row: Row): Promise<void> {
  const { orderNo } = row
  await publish(row, null, 'COMMAND')
  await step(orderNo, () => ({ to: 'submitting', source: 'COMMAND', exchange: null }))
  const answer = await parts.apply(row, callbackUrl)
  if (!answer) return
  const { agentpayOrderId, fee, exchange } = answer
  await step(orderNo, ({ state }) =>
    // Otherwise the callback came first, and there is nothing left to record.
    state === 'submitting' ? { to: 'processing', source: 'APPLY', exchange, agentpayOrderId, fee } : null,
  )
}

async function settle({ mchOrderNo, status, amount, fee, utr, exchange }: OrderReport): Promise<void> {
  await step(mchOrderNo, (row) => {
    const open = row.state === 'submitting' || row.state === 'processing'
    if (!open || amount !== row.amount || (status !== 'success' && status !== 'failed')) return null
    return { to: status === 'success' ? 'paid' : 'failed', source: 'CALLBACK', exchange, fee, utr }
  })
}

/** One step of one payout: lock it, decide, store, commit; then publish. */
async function step(orderNo: string, decide: (row: Row) => Step | null): Promise<void> {
  const done = await db.transaction('test', async (tx) => {
    const [before] = await tx.run(lockPayout, { orderNo })
    const decided = before && decide(before)
    if (!decided) return null
    const { to, source, exchange, ...news } = decided
    const after: Row = { ...before, ...news, state: to, version: before.version + 1 }
    await tx.run(updatePayout, after)
    await tell(tx, after, before.state, source, exchange)
    return { after, from: before.state, source }
  })
  if (done) await publish(done.after, done.from, done.source)
}

async function tell(
  tx: Transaction,
  { merchantId, payoutId, version, state }: Row,
  from: State | null,
  source: EvidenceSource,
  exchange: Exchange | null,
): Promise<void> {
  const text = exchange && JSON.stringify(exchange)
  await tx.run(insertHistory, { merchantId, payoutId, version, from, to: state, source, exchange: text })
}

/** The event, with the result if the payout ended, in one request. */
async function publish(row: Row, from: State | null, source: EvidenceSource): Promise<void> {
  await producer.sendBatch({
    acks: -1,
    topicMessages: parts.messagesOf(row, from, source).map((message) => {
      const { topic, key, value } = message
      return { topic, messages: [{ key, value, headers: cloudEvent(message, 'naive') }] }
    }),
  })
}
