import { SAFEGUARDS } from '../../src/app/safeguards.ts'
import { recoverCommand, recoverWith } from '../../src/cli/commands/recover/recover.ts'
import { run } from '../../src/cli/failure.ts'
import { WITHOUT } from './safeguards.ts'

/**
 * `payoutd recover` without one of its safeguards: `node prove/without/recover-without.ts 'own history compared'
 * --by …`.
 */
const [node = '', program = '', name = '', ...args] = process.argv
const missing = WITHOUT[name]
if (!missing) throw new Error(`there is no safeguard "${name}"`)
const left = { ...SAFEGUARDS, ...missing.put(SAFEGUARDS) }
await run(
  recoverCommand.action((options) => recoverWith(left, options)),
  [node, program, ...args],
)
