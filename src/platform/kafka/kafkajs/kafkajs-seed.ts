import { createRequire } from 'node:module'
import kafkajs from 'kafkajs'

type Seed = { connect(): Promise<void> }
type BrokerPool = { seedBroker: Seed; createSeedBroker(): Promise<void> }

const require = createRequire(import.meta.url)
/** What KafkaJS says of a connection that is closed at once, and of one that answers nothing. */
const AWAY = new Set(['KafkaJSConnectionClosedError', 'KafkaJSRequestTimeoutError'])
let done = false

/**
 * KafkaJS 2.2.4 goes on to the next of the brokers that it was given only where one refuses the connection. One that takes
 * it and closes it (a broker that is down behind a proxy) or answers nothing (a frozen one) it tried again and again, and
 * every new client begins with the first. Now it goes on from those as well.
 */
export function goOnToTheNextBroker(): void {
  if (done) return
  done = true
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
