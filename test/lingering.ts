import { after } from 'node:test'

/** Longer than any part may take to stop. */
const LINGERS_MS = 30_000

/**
 * Ends the process of a test file whose tests are over but that something keeps alive, such as an abandoned Kafka
 * client: Node would wait for it for ever. Prints the cause, which is a fault to find.
 */
if (process.env.NODE_TEST_CONTEXT)
  after(() => {
    const end = () => {
      console.error(`${process.argv[1]} lingers: ${process.getActiveResourcesInfo().join(', ')}`)
      process.exit()
    }
    setTimeout(end, LINGERS_MS).unref()
  })
