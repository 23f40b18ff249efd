import { Command, Option } from 'commander'
import type { Exchange } from '../../../domain/evidence.ts'
import { scrub } from '../../../domain/mask.ts'
import type { Paise } from '../../../domain/money.ts'
import type {
  PayinCreateAnswer,
  PayinQueryAnswer,
  PayinRecoverAnswer,
  PayParams,
} from '../../../domain/payin/gateway-answers.ts'
import type { Decided } from '../../../domain/payout/resolve.ts'
import { formatTime } from '../../../domain/times.ts'
import { qrTerminal } from '../../../payins/qr.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import { withWho } from '../../decision.ts'
import { note, printDrawing } from '../../print.ts'
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

const JSON_FORM = 'print the answer as JSON; amounts in paise, times in milliseconds since 1970'

type GatewayPayinOptions = ConnectionOptions &
  Decided & {
    mchOrderNo: string
    amount: Paise
    currency: string
    notifyUrl: string
    returnUrl?: string
    accountName?: string
    phoneNumber?: string
    payerEmail?: string
    remark?: string
    qr?: true
    json?: true
  }

const create = withWho(withConnection(new Command('create')))
  .description('create a payin at the gateway; payoutd’s ledger will not know of it')
  .requiredOption('--mch-order-no <number>', 'a number that is new to the gateway')
  .requiredOption('--amount <paise>', 'the amount in paise; ₹500 is 50000', paiseOf)
  .requiredOption('--notify-url <url>', 'where the gateway sends its callback')
  .option('--return-url <url>', 'where the payer’s browser goes after the payment')
  .option('--currency <code>', 'the currency, as the gateway writes it', 'INR')
  .option('--account-name <name>', 'the payer’s name')
  .option('--phone-number <number>', 'the payer’s phone number, 10 digits')
  .option('--payer-email <address>', 'the payer’s e-mail address')
  .option('--remark <text>', 'a remark for the gateway')
  .addOption(new Option('--qr', 'draw the QR code').conflicts('json'))
  .option('--json', JSON_FORM)
  .action(async ({ qr, json, by, reason, ...options }: GatewayPayinOptions) => {
    const connection = connectionOf(options)
    const order = {
      mchOrderNo: options.mchOrderNo,
      amount: options.amount,
      currency: options.currency,
      notifyUrl: options.notifyUrl,
      returnUrl: options.returnUrl ?? null,
      accountName: options.accountName ?? null,
      phoneNumber: options.phoneNumber ?? null,
      payerEmail: options.payerEmail ?? null,
      remark: options.remark ?? null,
    }
    const act = { by, reason, command: 'gateway payin create', subjects: [order.mchOrderNo] }
    await recordRaw(connection, { ...act, order: { amount: order.amount.toString() } })
    const answer = await interruptible(
      () => printOutcome(interrupted(askAbout(order.mchOrderNo)), json === true),
      () => withClient(connection, (client) => client.payinCreate(order, { mayStillSend: () => true })),
    )
    printOutcome(createOutcome(answer, order.mchOrderNo, connection.dialect.paths.payinCreate), json === true)
    if (qr && answer.kind === 'accepted') await drawQr(answer.payParams)
  })

type PayinQueryOptions = ConnectionOptions & {
  mchOrderNo?: string
  payOrderId?: string
  executeNotify?: true
  json?: true
}

const query = withConnection(new Command('query'))
  .description('query the state of a payin')
  .addOption(
    new Option('--mch-order-no <number>', 'query by the merchant’s order number').conflicts('payOrderId'),
  )
  .option('--pay-order-id <number>', 'query by the gateway’s own number')
  .option('--execute-notify', 'ask the gateway to send its callback again')
  .option('--json', JSON_FORM)
  .action(async ({ mchOrderNo, payOrderId, executeNotify, json, ...options }: PayinQueryOptions) => {
    const by = mchOrderNo !== undefined ? { mchOrderNo } : payOrderId !== undefined ? { payOrderId } : null
    if (!by) throw new ExpectedFailure('which payin? give --mch-order-no or --pay-order-id')
    const connection = connectionOf(options)
    const answer = await withClient(connection, (client) =>
      client.payinQuery(by, { executeNotify: executeNotify === true }),
    )
    printOutcome(queryOutcome(answer, connection.dialect.paths.payinQuery), json === true)
  })

const recover = withWho(withConnection(new Command('recover')))
  .description('ask the gateway to find the payment with this UTR and to credit it to a payin')
  .requiredOption('--pay-order-id <number>', 'the gateway’s number of the payin')
  .requiredOption('--utr <utr>', 'the payment’s reference at the payer’s bank')
  .option('--json', JSON_FORM)
  .action(
    async ({
      payOrderId,
      utr,
      json,
      by,
      reason,
      ...options
    }: ConnectionOptions & Decided & { payOrderId: string; utr: string; json?: true }) => {
      const connection = connectionOf(options)
      const act = { by, reason, command: 'gateway payin recover', subjects: [payOrderId] }
      await recordRaw(connection, { ...act, order: { utr } })
      const next = `query it with payoutd gateway payin query --pay-order-id ${payOrderId}`
      const answer = await interruptible(
        () => printOutcome(interrupted(next), json === true),
        () => withClient(connection, (client) => client.payinRecover({ payOrderId, utr })),
      )
      printOutcome(recoverOutcome(answer, connection.dialect.paths.payinRecovery, next), json === true)
    },
  )

export const payinCommand = new Command('payin')
  .description('create a payin outside the ledger, query one, or recover one by its UTR')
  .addCommand(create)
  .addCommand(query)
  .addCommand(recover)

async function drawQr({ qrString, url, payUrl }: PayParams): Promise<void> {
  const text = qrString || url || payUrl
  if (text) printDrawing(await qrTerminal(text))
  else note('no QR code: the gateway’s answer contains no payment data')
}

const askAbout = (mchOrderNo: string): string =>
  `query it with payoutd gateway payin query --mch-order-no ${mchOrderNo}`

/** The output has the answer's payParams in full beside the exchange, which has them masked. */
function withoutPayParams({ response, ...exchange }: Exchange): Exchange {
  const { payParams, ...others } = response ?? {}
  return { ...exchange, response: others }
}

function createOutcome(answer: PayinCreateAnswer, mchOrderNo: string, path: string): GatewayOutcome {
  switch (answer.kind) {
    case 'accepted': {
      const { payUrl, qrString, url, upi, payMethod } = answer.payParams
      const facts = [
        ['mchOrderNo', mchOrderNo],
        ['payOrderId', answer.payOrderId],
        ['payMethod', payMethod],
        ['checkout page', payUrl],
        ['QR string', qrString],
        ['deep link', url],
        ['UPI', upi],
      ] as const
      const json = { ...answer, exchange: withoutPayParams(answer.exchange) }
      return { code: EXIT.yes, title: 'created, not paid yet', facts, json }
    }
    case 'refused':
      return { code: EXIT.no, title: 'refused', facts: said(answer.exchange), json: answer }
    case 'retry-later':
      return { code: EXIT.no, title: 'not accepted now', facts: said(answer.exchange), json: answer }
    case 'duplicate': {
      const title = `the gateway already has an order ${mchOrderNo}: ${askAbout(mchOrderNo)}`
      return { code: EXIT.unknown, title, facts: said(answer.exchange), json: answer }
    }
    case 'not-sent':
    case 'unknown':
      return withoutAnswer(answer, path, askAbout(mchOrderNo))
  }
}

function queryOutcome(answer: PayinQueryAnswer, path: string): GatewayOutcome {
  switch (answer.kind) {
    case 'known': {
      const { report } = answer
      const voucherMap = report.voucherMap && scrub(report.voucherMap)
      const facts = [
        ['mchOrderNo', report.mchOrderNo],
        ['payOrderId', report.payOrderId],
        ['amount', rupees(report.amount)],
        ['currency', report.currency],
        ['UTR', report.utr],
        ['paid', report.paidAt === null ? null : formatTime(report.paidAt)],
        ['productId', report.productId],
        ['voucher', voucherMap],
        ['error', report.errorMessage],
        ['notifyStatus', report.notifyStatus === null ? null : String(report.notifyStatus)],
      ] as const
      const json = { ...answer, report: { ...report, voucherMap } }
      return { code: EXIT.yes, title: `the payin is ${report.status}`, facts, json }
    }
    case 'not-found':
      return { code: EXIT.no, title: 'not found', facts: said(answer.exchange), json: answer }
    case 'retry':
      return {
        code: EXIT.unknown,
        title: 'the gateway asks to be queried later',
        facts: said(answer.exchange),
        json: answer,
      }
    case 'unknown':
      return withoutAnswer(answer, path)
  }
}

function recoverOutcome(answer: PayinRecoverAnswer, path: string, next: string): GatewayOutcome {
  switch (answer.kind) {
    case 'submitted': {
      const facts = [
        ['mchOrderNo', answer.mchOrderNo],
        ['error', answer.errorMessage],
      ] as const
      return {
        code: EXIT.yes,
        title: 'submitted: a query or the callback will report the result',
        facts,
        json: answer,
      }
    }
    case 'refused':
      return { code: EXIT.no, title: 'refused', facts: said(answer.exchange), json: answer }
    case 'not-found':
      return { code: EXIT.no, title: 'not found', facts: said(answer.exchange), json: answer }
    case 'retry-later':
      return {
        code: EXIT.no,
        title: 'the gateway does not accept the recovery now',
        facts: said(answer.exchange),
        json: answer,
      }
    case 'unknown':
      return withoutAnswer(answer, path, next)
  }
}
