import { Command } from 'commander'
import { onScreen } from '../src/text/text.ts'

type Listed = { name: string; description: string; load: () => Promise<Command> }

/** Everything that `payoutd` can be told. A command's file is loaded when it is run, because loading them all takes a second. */
const COMMANDS: readonly Listed[] = [
  {
    name: 'serve',
    description: 'run payoutd until SIGINT or SIGTERM stops it',
    load: async () => (await import('../src/cli/commands/serve.ts')).serveCommand,
  },
  {
    name: 'migrate',
    description:
      'bring tables, topics and schemas up to date; you can repeat it, and run it on several machines at once',
    load: async () => (await import('../src/cli/commands/migrate.ts')).migrateCommand,
  },
  {
    name: 'doctor',
    description: 'check everything that payoutd needs; report what is wrong and how to mend it',
    load: async () => (await import('../src/cli/commands/doctor.ts')).doctorCommand,
  },
  {
    name: 'ingest',
    description:
      'check a payroll file and publish its rows as payouts (the format: docs/reference/payroll-file.md)',
    load: async () => {
      const { ingestCommand } = await import('../src/cli/commands/ingest.ts')
      const { readConfig } = await import('../src/config/config.ts')
      return ingestCommand({ readConfig: () => readConfig(process.env) })
    },
  },
  {
    name: 'payout',
    description: 'look at payouts and decide about them',
    load: async () => (await import('../src/cli/commands/payout/payout.ts')).payoutCommand,
  },
  {
    name: 'anomaly',
    description: 'look at evidence that contradicts the ledger and acknowledge it',
    load: async () => (await import('../src/cli/commands/anomaly.ts')).anomalyCommand,
  },
  {
    name: 'payin',
    description: 'create payins, look at them, recover one by its UTR, or resolve one in review',
    load: async () => (await import('../src/cli/commands/payin/payin.ts')).payinCommand,
  },
  {
    name: 'dlq',
    description: 'look at dead letters or replay them',
    load: async () => (await import('../src/cli/commands/dlq.ts')).dlqCommand,
  },
  {
    name: 'outbox',
    description: 'look at messages that Kafka refused, or publish them again',
    load: async () => (await import('../src/cli/commands/outbox.ts')).outboxCommand,
  },
  {
    name: 'reconcile',
    description: 'query the gateway about every payout that was sent in a period, and list the differences',
    load: async () => (await import('../src/cli/commands/reconcile.ts')).reconcileCommand,
  },
  {
    name: 'recover',
    description:
      'after a failover or restore of the database: fence merchants until the gateway has answered about every open payout',
    load: async () => (await import('../src/cli/commands/recover/recover.ts')).recoverCommand,
  },
  {
    name: 'merchants',
    description:
      'list merchants with their state, circuit, balance, and what is queued, in flight and in review',
    load: async () => (await import('../src/cli/commands/merchant.ts')).merchantsCommand,
  },
  {
    name: 'merchant',
    description: 'change the gateway settings in force for a merchant',
    load: async () => (await import('../src/cli/commands/merchant.ts')).merchantCommand,
  },
  {
    name: 'pause',
    description: 'stop sending payouts of a merchant; payoutd still follows those it has sent',
    load: async () => (await import('../src/cli/commands/merchant.ts')).pauseCommand,
  },
  {
    name: 'resume',
    description: 'send payouts of a paused merchant again',
    load: async () => (await import('../src/cli/commands/merchant.ts')).resumeCommand,
  },
  {
    name: 'keys',
    description: 'rotate the encryption keys',
    load: async () => (await import('../src/cli/commands/keys.ts')).keysCommand,
  },
  {
    name: 'acts',
    description: 'look at the record of what people did with commands',
    load: async () => (await import('../src/cli/commands/acts.ts')).actsCommand,
  },
  {
    name: 'gateway',
    description: 'call the gateway directly, without database or Kafka',
    load: async () => {
      const { gatewayCommand } = await import('../src/cli/commands/gateway/gateway.ts')
      const { probeCommand } = await import('../devkit/lab/probe.ts')
      const { conformanceCommand } = await import('../devkit/lab/conformance.ts')
      return gatewayCommand.addCommand(probeCommand).addCommand(conformanceCommand)
    },
  },
]

/** The program with the commands that these arguments name; of the others it knows what `--help` lists. */
export async function programFor(args: readonly string[]): Promise<Command> {
  const program = new Command('payoutd')
    .description('pays people through a payment gateway: never twice, never guessing')
    .configureHelp({ subcommandTerm: (command) => command.name() })
  for (const { name, description, load } of COMMANDS) {
    const command = args.includes(name) ? await load() : new Command(name)
    program.addCommand(command.description(description))
  }
  showSafely(program)
  return program
}

/** What commander itself says, too, repeats what was typed or pasted. */
function showSafely(command: Command): void {
  command.configureOutput({ outputError: (text, write) => write(onScreen(text)) })
  for (const each of command.commands) showSafely(each)
}

/** The program with all its commands. */
export const wholeProgram = (): Promise<Command> => programFor(COMMANDS.map(({ name }) => name))
