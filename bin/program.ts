import { Command } from 'commander'
import { conformanceCommand } from '../devkit/lab/conformance.ts'
import { probeCommand } from '../devkit/lab/probe.ts'
import { actsCommand } from '../src/cli/commands/acts.ts'
import { anomalyCommand } from '../src/cli/commands/anomaly.ts'
import { dlqCommand } from '../src/cli/commands/dlq.ts'
import { doctorCommand } from '../src/cli/commands/doctor.ts'
import { gatewayCommand } from '../src/cli/commands/gateway/gateway.ts'
import { ingestCommand } from '../src/cli/commands/ingest.ts'
import { keysCommand } from '../src/cli/commands/keys.ts'
import {
  merchantCommand,
  merchantsCommand,
  pauseCommand,
  resumeCommand,
} from '../src/cli/commands/merchant.ts'
import { migrateCommand } from '../src/cli/commands/migrate.ts'
import { outboxCommand } from '../src/cli/commands/outbox.ts'
import { payinCommand } from '../src/cli/commands/payin/payin.ts'
import { payoutCommand } from '../src/cli/commands/payout/payout.ts'
import { reconcileCommand } from '../src/cli/commands/reconcile.ts'
import { recoverCommand } from '../src/cli/commands/recover.ts'
import { serveCommand } from '../src/cli/commands/serve.ts'
import { readConfig } from '../src/config/config.ts'

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
  .addCommand(gatewayCommand.addCommand(probeCommand).addCommand(conformanceCommand))
