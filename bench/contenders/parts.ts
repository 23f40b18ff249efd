import { readFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { readConfig } from '../../src/config/config.ts'
import type { Merchant } from '../../src/config/merchants.ts'
import type { PayoutCommand } from '../../src/domain/commands/command.ts'
import { validate } from '../../src/domain/commands/validate.ts'
import type { EvidenceSource, OrderReport } from '../../src/domain/evidence.ts'
import { orderNumber } from '../../src/domain/identifiers.ts'
import type { Payout } from '../../src/domain/payout/payout.ts'
import type { State } from '../../src/domain/payout/states.ts'
import { parsePayoutCallback } from '../../src/gateway/callbacks/callback.ts'
import { createGatewayClient } from '../../src/gateway/client.ts'
import { openDetails, sealDetails } from '../../src/ledger/encrypted-details.ts'
import { messagesAbout, type OutboxRow } from '../../src/messages/messages.ts'
import { schemaSubjects, topicNames } from '../../src/messages/topics.ts'
import { createHttpServer, listen } from '../../src/platform/http.ts'
import { kafkaFor } from '../../src/platform/kafka/connection.ts'
import { createLogger } from '../../src/platform/log.ts'
import { openCodec } from '../../src/platform/registry/codec.ts'
import { connectRegistry } from '../../src/platform/registry/registry.ts'
import { systemClock } from '../../src/platform/running/clock.ts'

/** A payout as the contenders store it. */
export type Row = Pick<Payout, 'merchantId' | 'payoutId' | 'batchId' | 'amount' | 'currency' | 'version'> &
  Pick<Payout, 'agentpayOrderId' | 'fee' | 'utr' | 'state'> & { orderNo: string; sealed: Buffer }

/**
 * What every contender uses of payoutd, because the comparison is not about it: settings, gateway client, signatures, sealed bank
 * details, Avro messages, HTTP server. Creates the tables in `sqlFile`, and ends the process on SIGTERM.
 */
export async function openParts(name: string, sqlFile: string) {
  const config = readConfig(process.env)
  const merchant = [...config.merchants.values()][0] as Merchant
  const topics = topicNames(config.topicPrefix)
  const log = createLogger({ name, level: config.logLevel })
  const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
  const encoders: Partial<Record<string, (record: object) => Buffer>> = {
    PayoutEvent: codec.encoder(topics.events, 'in.payoutd.PayoutEvent'),
    PayoutResult: codec.encoder(topics.results, 'in.payoutd.PayoutResult'),
  }
  // Ends with this process.
  const kafka = kafkaFor(config.kafka, log, new AbortController().signal)
  const gateway = createGatewayClient({ ...merchant, connections: config.inFlight, clock: systemClock })
  await createTables(config.databaseUrl, sqlFile)
  process.once('SIGTERM', () => process.exit(0))

  return {
    ...{ config, topics, log, kafka },

    /** The row of a command; undefined for whatever else there is on the topic, and for a command that breaks a rule. */
    async rowOf(value: Buffer | null): Promise<Row | undefined> {
      const decoded = await codec.decode(value)
      if (decoded.kind !== 'decoded' || decoded.name !== 'in.payoutd.PayoutRequested') return undefined
      const command = decoded.value as PayoutCommand
      if (validate(command, merchant.limits).length > 0) return undefined
      const { merchantId, payoutId, batchId, amount, currency } = command
      return {
        ...{ merchantId, payoutId, batchId, amount, currency },
        ...{ orderNo: orderNumber(merchantId, payoutId, 1), sealed: sealDetails(command, config.sealing) },
        ...{ state: 'queued', version: 1, agentpayOrderId: null, fee: null, utr: null },
      }
    },

    /** Calls the gateway; null, with a line in the log: it did not accept the order. */
    async apply(row: Row, notifyUrl: string) {
      const { orderNo, amount, currency } = row
      const details = openDetails(row, row.sealed, config.sealing)
      const order = { ...details, mchOrderNo: orderNo, amount, currency, notifyUrl }
      const answer = await gateway.apply(order, { mayStillSend: () => true })
      if (answer.kind === 'accepted') return answer
      log.error({ orderNo, answer: answer.kind }, 'not accepted')
      return null
    },

    /** The messages about a payout's step: its event, and its result if it ended. */
    messagesOf(row: Row, from: State | null, source: EvidenceSource): OutboxRow[] {
      const payout = { ...row, reason: null } as unknown as Payout
      const transition = { payout, from, source, faults: [], at: systemClock.now() }
      return messagesAbout(transition, topics, (type, record) => {
        const encode = encoders[type]
        if (!encode) throw new Error(`the contenders publish no ${type}`)
        return encode(record)
      })
    },

    /** Answers `success` to each verified callback once `settle` has resolved. Resolves with the address for the gateway to call. */
    async serveCallbacks(settle: (report: OrderReport) => Promise<unknown>): Promise<string> {
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
    },
  }
}

export type Parts = Awaited<ReturnType<typeof openParts>>

/** The headers of a message, as payoutd writes them. */
export const cloudEvent = ({ eventId, type }: Pick<OutboxRow, 'eventId' | 'type'>, source: string) => ({
  ce_specversion: '1.0',
  ce_id: eventId,
  ce_type: type,
  ce_source: source,
})

async function createTables(connectionString: string, sqlFile: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(readFileSync(path.join(import.meta.dirname, sqlFile), 'utf8'))
  await client.end()
}
