import { Command } from 'commander';
import { balanceCommand } from "./balance.js";
import { conformanceCommand } from "./conformance.js";
import { EXIT_CODES } from "./outcome.js";
import { payinCommand } from "./payin.js";
import { payoutCommand } from "./payout.js";
import { probeCommand } from "./probe.js";
import { signCommand } from "./sign.js";
import { verifyCommand } from "./verify.js";
/** `payoutd gateway`: the gateway itself, with neither database nor Kafka. */
export const gatewayCommand = new Command('gateway')
    .description('speak to the gateway directly, with neither database nor Kafka')
    .addCommand(balanceCommand)
    .addCommand(payinCommand)
    .addCommand(payoutCommand)
    .addCommand(signCommand)
    .addCommand(verifyCommand)
    .addCommand(probeCommand)
    .addCommand(conformanceCommand)
    .addHelpText('afterAll', EXIT_CODES);
