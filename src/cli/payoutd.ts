#!/usr/bin/env node
import { enableCompileCache } from 'node:module'

// Types are stripped once and kept below the system's temporary directory: every later start takes half the time.
enableCompileCache()
await import('./commands.ts')
