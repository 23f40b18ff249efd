import { createRequire } from 'node:module'
import kafkajs from 'kafkajs'

type Seed = { connect(): Promise<void> }
type BrokerPool = { seedBroker: Seed; createSeedBroker(): Promise<void> }

const require = createRequire(import.meta.url)
/** KafkaJS's errors for a connection that is closed at once, and for one that gets no answer. */
const AWAY = new Set(['KafkaJSConnectionClosedError', 'KafkaJSRequestTimeoutError'])

/**
 * KafkaJS 2.2.4 tries the next broker of its list only if one refuses the connection. If a broker accepts and
 * closes it (a broker that is down behind a proxy) or never answers (a frozen one), KafkaJS tries the same broker
 * again and again, and every new client begins with the first. With this change it moves on from those as well.
 */
export function goOnToTheNextBroker(): void {
  const { prototype } = require('kafkajs/src/cluster/brokerPool.js') as { prototype: BrokerPool }
  const create = prototype.createSeedBroker
  prototype.createSeedBroker = async function () {
    await create.call(this)
    const { seedBroker } = this
    const connect = seedBroker.connect.bind(seedBroker)
    seedBroker.connect = () =>
      connect().catch((error: Error) => {
        throw AWAY.has(error.name) ? new kafkajs.KafkaJSConnectionError(error.message) : error
      })
  }
}
