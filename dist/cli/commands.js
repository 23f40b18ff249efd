import { Command } from 'commander';
import { readConfig } from "../config/config.js";
import { actsCommand } from "./acts.js";
import { anomalyCommand } from "./anomaly.js";
import { dlqCommand } from "./dlq.js";
import { doctorCommand } from "./doctor.js";
import { gatewayCommand } from "./gateway/gateway.js";
import { ingestCommand } from "./ingest.js";
import { keysCommand } from "./keys.js";
import { merchantsCommand, pauseCommand, resumeCommand } from "./merchant.js";
import { migrateCommand } from "./migrate.js";
import { outboxCommand } from "./outbox.js";
import { payinCommand } from "./payin.js";
import { payoutCommand } from "./payout.js";
import { reconcileCommand } from "./reconcile.js";
import { recoverCommand } from "./recover.js";
import { serveCommand } from "./serve.js";
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
    .addCommand(pauseCommand)
    .addCommand(resumeCommand)
    .addCommand(keysCommand)
    .addCommand(actsCommand)
    .addCommand(gatewayCommand);
