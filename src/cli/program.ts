import { Command } from 'commander'
import { readConfig } from '../config/config.ts'
import { actsCommand } from './acts.ts'
import { anomalyCommand } from './anomaly.ts'
import { dlqCommand } from './dlq.ts'
import { doctorCommand } from './doctor.ts'
import { gatewayCommand } from './gateway/gateway.ts'
import { ingestCommand } from './ingest.ts'
import { keysCommand } from './keys.ts'
import { merchantCommand, merchantsCommand, pauseCommand, resumeCommand } from './merchant.ts'
import { migrateCommand } from './migrate.ts'
import { outboxCommand } from './outbox.ts'
import { payinCommand } from './payin.ts'
import { payoutCommand } from './payout.ts'
import { reconcileCommand } from './reconcile.ts'
import { recoverCommand } from './recover.ts'
import { serveCommand } from './serve.ts'

/** Everything that `payoutd` can be told. */
export const program = new Command('payoutd')
  .description('pays people through a payment gateway: never twice, never guessing')
  .addCommand(serveCommand)
  .addCommand(migrateCommand)
  .addCommand(doctorCommand)
  .addCommand(ingestCommand({ readConfig: () => readConfig(process.env) }))
  .addCommand(payoutCommand)
  .addCommand(anomalyCommand)
  .addCommand(payinCommand)
  .addCommand(dlqCommand)
  .addCommand(outboxCommand)
  .addCommand(reconcileCommand)
  .addCommand(recoverCommand)
  .addCommand(merchantsCommand)
  .addCommand(merchantCommand)
  .addCommand(pauseCommand)
  .addCommand(resumeCommand)
  .addCommand(keysCommand)
  .addCommand(actsCommand)
  .addCommand(gatewayCommand)
