import { after } from 'node:test'

/** Longer than whatever is told to stop may take. */
const LINGERS_MS = 30_000

/**
 * Ends the process of a test file whose tests are over and that something keeps alive, such as a Kafka client that was given
 * up: Node would wait for it for ever. Says what it is, as that is a fault to find.
 */
if (process.env.NODE_TEST_CONTEXT)
  after(() => {
    const end = () => {
      console.error(`${process.argv[1]} lingers: ${process.getActiveResourcesInfo().join(', ')}`)
      process.exit()
    }
    setTimeout(end, LINGERS_MS).unref()
  })
