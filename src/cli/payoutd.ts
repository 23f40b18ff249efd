#!/usr/bin/env node
import { enableCompileCache } from 'node:module'

// Types are stripped once and kept below the system's temporary directory: every later start takes half the time.
enableCompileCache()
const { program } = await import('./program.ts')
const { loseUnreadOutput, run } = await import('./failure.ts')
loseUnreadOutput()
await run(program)
