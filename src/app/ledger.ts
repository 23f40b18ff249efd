import type { Config } from '../config/config.ts'
import { watchServer } from '../ledger/failover-watch.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { noteOwnTopics } from '../ledger/own-topics.ts'
import { withNotedIds } from '../ledger/schema-ids.ts'
import { demandSchema } from '../ledger/tables/schema.ts'
import type { Encode } from '../messages/messages.ts'
import { schemaSubjects, type Topics, topicNames } from '../messages/topics.ts'
import { createLogger, type Logger } from '../platform/log.ts'
import { connectDatabase } from '../platform/postgres/postgres.ts'
import { type Codec, openCodec } from '../platform/registry/codec.ts'
import { connectRegistry } from '../platform/registry/registry.ts'
import type { Lifecycle } from '../platform/running/lifecycle.ts'

/**
 * Opens the ledger. Rejects with a readable message if other topics belong to it than those of the settings, or if the registry
 * lacks a schema of this version, or has it no longer under the id that the ledger noted.
 */
export async function openLedger(
  config: Config,
  lifecycle: Lifecycle,
  {
    connect = connectDatabase,
    log = createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 }),
  }: { connect?: typeof connectDatabase; log?: Logger } = {},
): Promise<{ ledger: Ledger; codec: Codec }> {
  const topics = topicNames(config.topicPrefix)
  const db = connect({
    url: config.databaseUrl,
    connections: config.databaseConnections,
    applicationName: 'payoutd',
    onConnect: watchServer([...config.merchants.keys()], log),
  })
  lifecycle.own('database', () => db.close())
  await demandSchema(db)
  await noteOwnTopics(db, config.topicPrefix)
  const codec = await openCodec(
    withNotedIds(connectRegistry(config.registry), db, log),
    schemaSubjects(topics),
  )
  return { codec, ledger: { db, topics, encode: encoderOf(codec, topics) } }
}

/** Encodes what the ledger publishes, each record for its topic. */
export function encoderOf(codec: Codec, topics: Topics): Encode {
  const encoders = {
    PayoutEvent: codec.encoder(topics.events, 'in.payoutd.PayoutEvent'),
    PayoutResult: codec.encoder(topics.results, 'in.payoutd.PayoutResult'),
    PayoutReversed: codec.encoder(topics.results, 'in.payoutd.PayoutReversed'),
    PayoutAnomaly: codec.encoder(topics.anomalies, 'in.payoutd.PayoutAnomaly'),
    PayinResult: codec.encoder(topics.payinResults, 'in.payoutd.PayinResult'),
  }
  return (type, record) => encoders[type](record)
}
