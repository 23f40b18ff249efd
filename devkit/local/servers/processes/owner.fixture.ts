/** The process that owns a stack, for tests that kill it. Prints the pids, and what Ctrl-C did. */
import { silentLogger } from '../../../../src/platform/log.ts'
import { startStack } from '../stack.ts'

const [, , dir = '', given = '{}'] = process.argv
const stack = await startStack({
  dir,
  given: JSON.parse(given),
  sandbox: false,
  ports: 'any',
  log: silentLogger,
})
// Before it reports that it is up: the test may press Ctrl-C at once.
process.on('SIGINT', () => process.stdout.write('interrupted\n'))
process.stdout.write(`${JSON.stringify({ pids: stack.pids, databaseUrl: stack.databaseUrl })}\n`)
