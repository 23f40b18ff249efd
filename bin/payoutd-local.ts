#!/usr/bin/env node
import { Command } from 'commander'
import { demoCommand } from '../devkit/local/demo.ts'
import { upCommand } from '../devkit/local/up.ts'
import { leave, loseUnreadOutput, run } from '../src/cli/failure.ts'

/** A program of its own: the servers that it brings are not installed where payoutd runs for real. */
loseUnreadOutput()
await run(
  new Command('payoutd-local')
    .description('payoutd with everything it needs, on this machine')
    .addCommand(upCommand)
    .addCommand(demoCommand),
)
await leave()
