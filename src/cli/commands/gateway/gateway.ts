import { Command } from 'commander'
import { balanceCommand } from './balance.ts'
import { EXIT_CODES } from './outcome.ts'
import { payinCommand } from './payin.ts'
import { payoutCommand } from './payout.ts'
import { signCommand } from './sign.ts'
import { verifyCommand } from './verify.ts'

/** `payoutd gateway`: talks to the gateway itself, without database or Kafka. */
export const gatewayCommand = new Command('gateway')
  .addCommand(balanceCommand)
  .addCommand(payinCommand)
  .addCommand(payoutCommand)
  .addCommand(signCommand)
  .addCommand(verifyCommand)
  .addHelpText('afterAll', EXIT_CODES)
