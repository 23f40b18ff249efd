#!/usr/bin/env node
import { Command } from 'commander'
import { ConfigError } from '../config/config.ts'
import { migrateCommand } from './migrate.ts'
import { serveCommand } from './serve.ts'

const program = new Command('payoutd')
  .description('pays people through a payment gateway: never twice, never guessing')
  .addCommand(serveCommand)
  .addCommand(migrateCommand)

try {
  await program.parseAsync()
} catch (error) {
  // A person reads this: the message says what to do. The stack is for bugs.
  const expected = error instanceof ConfigError
  console.error(expected ? error.message : error)
  process.exitCode = 1
}
