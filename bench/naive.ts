import { readFileSync } from 'node:fs'
import pLimit from 'p-limit'
import pg from 'pg'
import { readConfig } from '../src/config/config.ts'
import type { Merchant } from '../src/config/merchants.ts'
import type { PayoutCommand } from '../src/domain/commands/command.ts'
import { validate } from '../src/domain/commands/validate.ts'
import type { EvidenceSource, Exchange, OrderReport } from '../src/domain/evidence.ts'
import { orderNumber } from '../src/domain/identifiers.ts'
import type { Payout } from '../src/domain/payout/payout.ts'
import type { State } from '../src/domain/payout/states.ts'
import { parsePayoutCallback } from '../src/gateway/callbacks/callback.ts'
import { createGatewayClient } from '../src/gateway/client.ts'
import { openDetails, sealDetails } from '../src/ledger/encrypted-details.ts'
import { messagesAbout } from '../src/messages/messages.ts'
import { schemaSubjects, topicNames } from '../src/messages/topics.ts'
import { createHttpServer, listen } from '../src/platform/http.ts'
import { kafkaFor } from '../src/platform/kafka/connection.ts'
import { createLogger } from '../src/platform/log.ts'
import { connectDatabase, sql, type Transaction } from '../src/platform/postgres/postgres.ts'
import { openCodec } from '../src/platform/registry/codec.ts'
import { connectRegistry } from '../src/platform/registry/registry.ts'
import { systemClock } from '../src/platform/running/clock.ts'

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

type NaiveRow = Pick<Payout, 'merchantId' | 'payoutId' | 'batchId' | 'amount' | 'currency' | 'version'> &
  Pick<Payout, 'agentpayOrderId' | 'fee' | 'utr' | 'state'> & { orderNo: string; sealed: Buffer }

/** The result of one step of a payout. */
type Step = { to: State; source: EvidenceSource; exchange: Exchange | null } & Partial<
  Pick<NaiveRow, 'agentpayOrderId' | 'fee' | 'utr'>
>

const columns = {
  fragment: `merchant_id, payout_id, batch_id, order_no, amount, currency, state, version, agentpay_order_id, fee,
    utr, sealed`,
}

const insertPayout = sql<Omit<NaiveRow, 'agentpayOrderId' | 'fee' | 'utr'>, NaiveRow>`
  insert into payouts (merchant_id, payout_id, batch_id, order_no, amount, currency, state, version, sealed)
  values (${'merchantId'}, ${'payoutId'}, ${'batchId'}, ${'orderNo'}, ${'amount'}, ${'currency'}, ${'state'},
          ${'version'}, ${'sealed'})
  on conflict do nothing
  returning ${columns}`

const lockPayout = sql<{ merchantId: string; orderNo: string }, NaiveRow>`
  select ${columns} from payouts where merchant_id = ${'merchantId'} and order_no = ${'orderNo'} for update`

const updatePayout = sql<Pick<NaiveRow, 'merchantId' | 'payoutId' | 'state' | 'version'> & Partial<NaiveRow>>`
  update payouts
  set state = ${'state'}, version = ${'version'}, agentpay_order_id = ${'agentpayOrderId'}, fee = ${'fee'},
      utr = ${'utr'}, updated_at = now()
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

type NaiveHistory = Pick<NaiveRow, 'merchantId' | 'payoutId' | 'version'>
const insertHistory = sql<
  NaiveHistory & { from: State | null; to: State; source: string; exchange: string | null }
>`
  insert into history (merchant_id, payout_id, version, from_state, to_state, source, exchange)
  values (${'merchantId'}, ${'payoutId'}, ${'version'}, ${'from'}, ${'to'}, ${'source'}, ${'exchange'})`

const config = readConfig(process.env)
const merchant = [...config.merchants.values()][0] as Merchant
const topics = topicNames(config.topicPrefix)
const log = createLogger({ name: 'naive', level: config.logLevel })
const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
const encoders = {
  PayoutEvent: codec.encoder(topics.events, 'in.payoutd.PayoutEvent'),
  PayoutResult: codec.encoder(topics.results, 'in.payoutd.PayoutResult'),
  PayoutAnomaly: codec.encoder(topics.anomalies, 'in.payoutd.PayoutAnomaly'),
}
const db = connectDatabase({
  url: config.databaseUrl,
  connections: DATABASE_CONNECTIONS,
  applicationName: 'naive',
})
const gateway = createGatewayClient({ ...merchant, connections: config.inFlight, clock: systemClock })
// Ends with this process.
const kafka = kafkaFor(config.kafka, log, new AbortController().signal)
const producer = kafka.producer({ allowAutoTopicCreation: false })
const consumer = kafka.consumer({ groupId: config.kafkaGroup })
const limit = pLimit(config.inFlight)

await createTables()
await producer.connect()
const callbackUrl = await serveCallbacks()
await consumer.connect()
await consumer.subscribe({ topics: [topics.commands], fromBeginning: true })
process.once('SIGTERM', () => process.exit(0))
log.info({}, 'naive is up')
await consumer.run({
  partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
  eachMessage: async ({ message }) => {
    const row = await accept(message.value)
    // Not awaited, so that the next message is read meanwhile: p-limit bounds the calls.
    if (row) limit(() => pay(row)).catch((error: unknown) => log.error({ err: error }, 'step failed'))
  },
})

async function createTables(): Promise<void> {
  const client = new pg.Client({ connectionString: config.databaseUrl })
  await client.connect()
  await client.query(readFileSync(new URL('./naive.sql', import.meta.url), 'utf8'))
  await client.end()
}

/** Stores a new command, before its offset is committed. Ignores repeats and refused commands. */
async function accept(value: Buffer | null): Promise<NaiveRow | undefined> {
  const decoded = await codec.decode(value)
  if (decoded.kind !== 'decoded' || decoded.name !== 'in.payoutd.PayoutRequested') return undefined
  const command = decoded.value as PayoutCommand
  if (validate(command, merchant.limits).length > 0) return undefined
  const { merchantId, payoutId, batchId, amount, currency } = command
  const payout = { merchantId, payoutId, batchId, amount, currency, state: 'queued', version: 1 } as const
  const orderNo = orderNumber(merchantId, payoutId, 1)
  const sealed = sealDetails(command, config.sealing)
  return db.transaction('test', async (tx) => {
    const [row] = await tx.run(insertPayout, { ...payout, orderNo, sealed })
    if (row) await tell(tx, row, null, 'COMMAND', null)
    return row
  })
}

/** One payout, from its record to the gateway's answer. */
async function pay(row: NaiveRow): Promise<void> {
  const { orderNo, amount, currency } = row
  await publish(row, null, 'COMMAND')
  await step(orderNo, () => ({ to: 'submitting', source: 'COMMAND', exchange: null }))
  const details = openDetails(row, row.sealed, config.sealing)
  const answer = await gateway.apply(
    { ...details, mchOrderNo: orderNo, amount, currency, notifyUrl: callbackUrl },
    { mayStillSend: () => true },
  )
  if (answer.kind !== 'accepted') {
    log.error({ orderNo, answer: answer.kind }, 'not accepted')
    return
  }
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
async function step(orderNo: string, decide: (row: NaiveRow) => Step | null): Promise<void> {
  const done = await db.transaction('test', async (tx) => {
    const [before] = await tx.run(lockPayout, { merchantId: merchant.merchantId, orderNo })
    const decided = before && decide(before)
    if (!decided) return null
    const { to, source, exchange, ...news } = decided
    const after: NaiveRow = { ...before, ...news, state: to, version: before.version + 1 }
    await tx.run(updatePayout, after)
    await tell(tx, after, before.state, source, exchange)
    return { after, from: before.state, source }
  })
  if (done) await publish(done.after, done.from, done.source)
}

async function tell(
  tx: Transaction,
  { merchantId, payoutId, version, state }: NaiveRow,
  from: State | null,
  source: EvidenceSource,
  exchange: Exchange | null,
): Promise<void> {
  const text = exchange && JSON.stringify(exchange)
  await tx.run(insertHistory, { merchantId, payoutId, version, from, to: state, source, exchange: text })
}

/** The event, with the result if the payout ended, in one request. */
async function publish(row: NaiveRow, from: State | null, source: EvidenceSource): Promise<void> {
  const payout = { ...row, reason: null } as unknown as Payout
  const at = systemClock.now()
  const messages = messagesAbout({ payout, from, source, faults: [], at }, topics, (type, record) =>
    encoders[type as keyof typeof encoders](record),
  )
  await producer.sendBatch({
    acks: -1,
    topicMessages: messages.map(({ topic, key, value, eventId, type }) => {
      const headers = { ce_specversion: '1.0', ce_id: eventId, ce_type: type, ce_source: 'naive' }
      return { topic, messages: [{ key, value, headers }] }
    }),
  })
}

/** Returns the address that the gateway calls. */
async function serveCallbacks(): Promise<string> {
  const server = createHttpServer()
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, passOver) => passOver(null))
  server.post('/callbacks', async (request, reply) => {
    const rawQuery = request.raw.url?.split('?', 2)[1] ?? ''
    const parsed = parsePayoutCallback(rawQuery, merchant.dialect, merchant.key)
    if (parsed.kind !== 'verified') return reply.code(401).send('bad signature')
    await settle(parsed.report)
    return reply.type('text/plain').send('success')
  })
  return `${await listen(server, config.publicAt)}/callbacks`
}
