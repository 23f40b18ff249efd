#!/usr/bin/env node
import module from 'node:module'

if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(`payoutd needs Node 24 or newer, and this is ${process.version}`)
  process.exit(1)
}
// Types are stripped once and kept below the system's temporary directory: every later start takes half the time.
module.enableCompileCache()
const { programFor } = await import('./program.ts')
const { leave, loseUnreadOutput, run } = await import('../src/cli/failure.ts')
loseUnreadOutput()
await run(await programFor(process.argv.slice(2)))
await leave()
