import { Command } from 'commander'
import type { BalanceAnswer } from '../../../domain/gateway-answers.ts'
import { type ConnectionOptions, connectionOf, withClient, withConnection } from './connection.ts'
import { EXIT, type GatewayOutcome, printOutcome, rupees, withoutAnswer } from './outcome.ts'

export const balanceCommand = withConnection(new Command('balance'))
  .description('query the merchant’s balance')
  .option('--json', 'print JSON; amounts in paise')
  .action(async ({ json, ...options }: ConnectionOptions & { json?: true }) => {
    const connection = connectionOf(options)
    const answer = await withClient(connection, (client) => client.balance())
    printOutcome(outcomeOf(answer, connection.dialect.paths.balance), json === true)
  })

function outcomeOf(answer: BalanceAnswer, path: string): GatewayOutcome {
  if (answer.kind === 'unknown') return withoutAnswer(answer, path)
  return {
    code: EXIT.yes,
    title: `balance of ${answer.busNo ?? 'the merchant'}`,
    facts: [
      ['available', rupees(answer.availableAmount)],
      ['frozen', rupees(answer.frozenAmount)],
      ['pending', rupees(answer.pendingAmount)],
      ['unsettled', rupees(answer.unsettledAmount)],
      ['total', rupees(answer.amount)],
    ],
    json: answer,
  }
}
