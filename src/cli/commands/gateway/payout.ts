import { Command, Option } from 'commander'
import type { ApplyAnswer, QueryAnswer } from '../../../domain/gateway-answers.ts'
import { maskAccount, maskVpa } from '../../../domain/mask.ts'
import { formatRupees, type Paise } from '../../../domain/money.ts'
import type { Decided } from '../../../domain/payout/resolve.ts'
import type { ApplyOrder } from '../../../gateway/calls/apply.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import { agreed } from '../../agreed.ts'
import { withWho } from '../../decision.ts'
import { note } from '../../print.ts'
import { type ConnectionOptions, connectionOf, withClient, withConnection } from './connection.ts'
import { interruptible } from './interruption.ts'
import {
  EXIT,
  type GatewayOutcome,
  interrupted,
  printOutcome,
  rupees,
  said,
  withoutAnswer,
} from './outcome.ts'
import { paiseOf } from './paise-of.ts'
import { recordRaw } from './record.ts'

type ApplyOptions = ConnectionOptions &
  Decided & {
    mchOrderNo: string
    amount: Paise
    currency: string
    accountName?: string
    accountNo: string
    ifsc?: string
    vpa?: string
    phoneNumber?: string
    payerEmail?: string
    remark?: string
    notifyUrl: string
    yes?: true
    json?: true
  }

const WARNING =
  'This moves money outside payoutd’s ledger: payoutd will not know of this payout and will not follow it.'

const apply = withWho(withConnection(new Command('apply')))
  .description(`send one payout to the gateway. ${WARNING}`)
  .requiredOption(
    '--mch-order-no <number>',
    'a number that is new to the gateway: many gateways accept the same number twice and pay twice',
  )
  .requiredOption('--amount <paise>', 'the amount in paise; ₹500 is 50000', paiseOf)
  .requiredOption('--account-no <number>', 'the recipient’s account number; for a VPA, too')
  .addOption(new Option('--ifsc <code>', 'the IFSC of the recipient’s bank; or give --vpa').conflicts('vpa'))
  .option('--vpa <address>', 'the recipient’s UPI address; or give --ifsc')
  .requiredOption('--notify-url <url>', 'where the gateway sends its callback')
  .option('--currency <code>', 'the currency, as the gateway writes it', 'INR')
  .option('--account-name <name>', 'the recipient’s name')
  .option('--phone-number <number>', 'the recipient’s phone number, 10 digits')
  .option('--payer-email <address>', 'the recipient’s e-mail address')
  .option('--remark <text>', 'a remark for the gateway')
  .option('--yes', 'do not ask; needed if there is no terminal')
  .option('--json', 'print the answer as JSON; amounts in paise')
  .action(async ({ yes, json, by, reason, ...options }: ApplyOptions) => {
    const connection = connectionOf(options)
    const order = orderOf(options)
    if (!yes) {
      if (!process.stdin.isTTY)
        throw new ExpectedFailure(`${WARNING} There is no terminal to ask on: give --yes`)
      if (!(await agreed(`${WARNING}\n${inWords(order)}. Go on?`))) {
        note('nothing was sent')
        process.exitCode = EXIT.no
        return
      }
    }
    const { mchOrderNo, amount, accountNo, vpa } = order
    const masked = { accountNo: maskAccount(accountNo), vpa: vpa && maskVpa(vpa) }
    const act = { by, reason, command: 'gateway payout apply', subjects: [mchOrderNo] }
    await recordRaw(connection, { ...act, order: { amount: amount.toString(), ...masked } })
    const answer = await interruptible(
      () => printOutcome(interrupted(askAbout(order.mchOrderNo)), json === true),
      () => withClient(connection, (client) => client.apply(order, { mayStillSend: () => true })),
    )
    printOutcome(applyOutcome(answer, order.mchOrderNo, connection.dialect.paths.apply), json === true)
  })

type PayoutQueryOptions = ConnectionOptions & { mchOrderNo?: string; agentpayOrderId?: string; json?: true }

const query = withConnection(new Command('query'))
  .description('query the state of a payout')
  .addOption(
    new Option('--mch-order-no <number>', 'query by the merchant’s order number').conflicts(
      'agentpayOrderId',
    ),
  )
  .option('--agentpay-order-id <number>', 'query by the gateway’s own number')
  .option('--json', 'print the answer as JSON; amounts in paise')
  .action(async ({ mchOrderNo, agentpayOrderId, json, ...options }: PayoutQueryOptions) => {
    const by =
      mchOrderNo !== undefined ? { mchOrderNo } : agentpayOrderId !== undefined ? { agentpayOrderId } : null
    if (!by) throw new ExpectedFailure('which payout? give --mch-order-no or --agentpay-order-id')
    const connection = connectionOf(options)
    const answer = await withClient(connection, (client) => client.query(by))
    printOutcome(queryOutcome(answer, connection.dialect.paths.payoutQuery), json === true)
  })

export const payoutCommand = new Command('payout')
  .description('send a payout outside the ledger, or query one')
  .addCommand(apply)
  .addCommand(query)

const orderOf = (options: Omit<ApplyOptions, keyof Decided>): ApplyOrder => ({
  mchOrderNo: options.mchOrderNo,
  amount: options.amount,
  currency: options.currency,
  accountName: options.accountName ?? null,
  accountNo: options.accountNo,
  ifsc: options.ifsc ?? null,
  vpa: options.vpa ?? null,
  phoneNumber: options.phoneNumber ?? null,
  payerEmail: options.payerEmail ?? null,
  remark: options.remark ?? null,
  notifyUrl: options.notifyUrl,
})

function inWords({ mchOrderNo, amount, accountNo, ifsc, vpa }: ApplyOrder): string {
  const account = `account ${maskAccount(accountNo)}`
  const to = vpa === null ? `${account}, IFSC ${ifsc}` : `VPA ${maskVpa(vpa)}, ${account}`
  return `${formatRupees(amount)} to ${to}, under the order number ${mchOrderNo}`
}

const askAbout = (mchOrderNo: string): string =>
  `query it with payoutd gateway payout query --mch-order-no ${mchOrderNo}`

function applyOutcome(answer: ApplyAnswer, mchOrderNo: string, path: string): GatewayOutcome {
  switch (answer.kind) {
    case 'accepted': {
      const { agentpayOrderId, fee, status } = answer
      const title = `accepted, which does not mean paid: ${askAbout(mchOrderNo)}`
      const facts = [
        ['mchOrderNo', mchOrderNo],
        ['agentpayOrderId', agentpayOrderId],
        ['status', status],
        ['fee', rupees(fee)],
      ] as const
      return { code: EXIT.yes, title, facts, json: answer }
    }
    case 'refused':
      return { code: EXIT.no, title: 'refused', facts: said(answer.exchange), json: answer }
    case 'retry-later':
      return { code: EXIT.no, title: 'not accepted now', facts: said(answer.exchange), json: answer }
    case 'duplicate': {
      const title = `the gateway already has an order ${mchOrderNo}, and may have paid it: ${askAbout(mchOrderNo)}`
      return { code: EXIT.unknown, title, facts: said(answer.exchange), json: answer }
    }
    case 'not-sent':
    case 'unknown':
      return withoutAnswer(answer, path, askAbout(mchOrderNo))
  }
}

function queryOutcome(answer: QueryAnswer, path: string): GatewayOutcome {
  switch (answer.kind) {
    case 'found': {
      const { mchOrderNo, agentpayOrderId, status, amount, fee, utr, errorMessage } = answer.report
      const facts = [
        ['mchOrderNo', mchOrderNo],
        ['agentpayOrderId', agentpayOrderId],
        ['amount', rupees(amount)],
        ['fee', rupees(fee)],
        ['UTR', utr],
        ['error', errorMessage],
      ] as const
      return { code: EXIT.yes, title: `the payout is ${status}`, facts, json: answer }
    }
    case 'not-found':
      return { code: EXIT.no, title: 'not found', facts: said(answer.exchange), json: answer }
    case 'unknown':
      return withoutAnswer(answer, path)
  }
}
