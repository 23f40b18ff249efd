#!/usr/bin/env node
import { Command } from 'commander'
import { doctorCommand } from './doctor.ts'
import { explain } from './failure.ts'
import { merchantsCommand, pauseCommand, resumeCommand } from './merchant.ts'
import { migrateCommand } from './migrate.ts'
import { payoutCommand } from './payout.ts'
import { serveCommand } from './serve.ts'

const program = new Command('payoutd')
  .description('pays people through a payment gateway: never twice, never guessing')
  .addCommand(serveCommand)
  .addCommand(migrateCommand)
  .addCommand(doctorCommand)
  .addCommand(payoutCommand)
  .addCommand(merchantsCommand)
  .addCommand(pauseCommand)
  .addCommand(resumeCommand)

try {
  await program.parseAsync()
} catch (error) {
  console.error(explain(error, process.env))
  process.exitCode = 1
}
