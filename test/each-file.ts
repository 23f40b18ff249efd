import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'

/** Longer than any part may take to stop. */
const LINGERS_MS = 30_000

// Loaded into the process of each test file.
if (process.env.NODE_TEST_CONTEXT) {
  after(endIfLingering)
  keepTemporaryFiles()
}

/**
 * Ends the process of a test file whose tests are over but that something keeps alive, such as an abandoned Kafka
 * client: Node would wait for it for ever. Prints the cause, which is a fault to find.
 */
function endIfLingering(): void {
  const end = () => {
    console.error(`${process.argv[1]} lingers: ${process.getActiveResourcesInfo().join(', ')}`)
    process.exit()
  }
  setTimeout(end, LINGERS_MS).unref()
}

/** All temporary files of the process and of those that it starts are in one folder, which goes when the process ends. */
function keepTemporaryFiles(): void {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-test-'))
  process.env.TMPDIR = folder
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
}
