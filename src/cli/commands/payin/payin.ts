import { Command } from 'commander'
import { openCollecting } from '../../../app/start-payins.ts'
import { type Config, readConfig } from '../../../config/config.ts'
import type { Payin } from '../../../domain/payin/payin.ts'
import type { Decided } from '../../../domain/payout/resolve.ts'
import { type CollectDeps, createPayin, recoverPayin } from '../../../payins/collect.ts'
import { qrTerminal, qrText } from '../../../payins/qr.ts'
import { recoveryOutcome } from '../../../payins/recovery-outcome.ts'
import {
  IDEMPOTENCY_KEY_RULE,
  isIdempotencyKey,
  type ReadRequest,
  readPayinRequest,
  readRecovery,
} from '../../../payins/request.ts'
import { payinJson, payinsInReview } from '../../../payins/story.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import { createLogger } from '../../../platform/log.ts'
import { Lifecycle } from '../../../platform/running/lifecycle.ts'
import { payinReviewText, payinStoryText, payinText } from '../../../views/payin-text.ts'
import { withWho } from '../../decision.ts'
import { countOf } from '../../options/count-of.ts'
import { merchantOf } from '../../options/merchant-of.ts'
import { inLines, note, noteDrawing, print } from '../../print.ts'
import { withDatabase } from '../../with-database.ts'
import { noSuchPayin, otherSettings, payinOf, WHOSE_PAYIN } from './payin-of.ts'
import { resolveCommand } from './payin-resolve.ts'

const JSON_FORM = 'print JSON; amounts in paise, times in milliseconds since 1970'

type CreatePayinOptions = Decided & {
  merchant?: string
  idempotencyKey: string
  qr?: true
  json?: true
  amount: string
  accountName?: string
  phoneNumber?: string
  payerEmail?: string
  remark?: string
  returnUrl?: string
}

const create = withWho(new Command('create'))
  .description('create a payin at the gateway; repeated with the same key, it shows the payin that exists')
  .requiredOption('--amount <paise>', 'the amount in paise; ₹500 is 50000')
  .requiredOption(
    '--idempotency-key <text>',
    'a key of your own that is unique to each payin, such as an invoice number',
  )
  .option('--merchant <id>', WHOSE_PAYIN)
  .option('--account-name <name>', 'the payer’s name')
  .option('--phone-number <number>', 'the payer’s phone number, 10 digits')
  .option('--payer-email <address>', 'the payer’s e-mail address')
  .option('--remark <text>', 'a remark for the gateway')
  .option('--return-url <url>', 'where the payer’s browser goes after the payment')
  .option('--qr', 'draw the QR code')
  .option('--json', JSON_FORM)
  .addHelpText('after', '\nThe exit code is 0 if the payin is open or paid, otherwise 1.')
  .action(async ({ merchant, idempotencyKey, qr, json, by, reason, ...body }: CreatePayinOptions) => {
    const config = readConfig(process.env)
    const merchantId = await merchantOf(config, merchant, 'payin')
    const { request } = good(readPayinRequest(body))
    if (!isIdempotencyKey(idempotencyKey))
      throw new ExpectedFailure(`--idempotency-key ${IDEMPOTENCY_KEY_RULE}`)
    const payin = await collecting(config, merchantId, async (deps) => {
      const wanted = { merchantId, idempotencyKey, request, traceparent: null }
      const created = await createPayin(wanted, deps, { by, reason })
      if ('payin' in created) return created.payin
      if (created.kind === 'other-settings') throw otherSettings(merchantId)
      throw new ExpectedFailure(
        `this idempotency key belongs to another request: see payoutd payin show ${created.payinId}`,
      )
    })
    print(json ? payinJson(payin, 2) : payinText(inLines(payin)))
    if (qr) await drawQr(payin)
    if (payin.state !== 'open' && payin.state !== 'paid') process.exitCode = 1
  })

const show = new Command('show')
  .description('show the history of one payin: every state change, with its evidence')
  .argument('<payinId>')
  .option('--merchant <id>', WHOSE_PAYIN)
  .option('--qr', 'draw the QR code')
  .option('--json', JSON_FORM)
  .action(async (payinId: string, { merchant, qr, json }: { merchant?: string; qr?: true; json?: true }) => {
    const config = readConfig(process.env)
    const key = { merchantId: await merchantOf(config, merchant, 'payin'), payinId }
    const story = await withDatabase(config, (db) => payinOf(db, key))
    print(json ? payinJson(story, 2) : payinStoryText(inLines(story)))
    if (qr) await drawQr(story)
  })

const recover = withWho(new Command('recover'))
  .description('ask the gateway to find the payment with this UTR and to credit it to a payin')
  .argument('<payinId>')
  .requiredOption('--utr <utr>', 'the payment’s reference at the payer’s bank')
  .option('--merchant <id>', WHOSE_PAYIN)
  .option('--json', JSON_FORM)
  .addHelpText('after', '\nThe exit code is 0 if the gateway accepted the recovery, otherwise 1.')
  .action(async (payinId: string, options: Decided & { utr: string; merchant?: string; json?: true }) => {
    const config = readConfig(process.env)
    const key = { merchantId: await merchantOf(config, options.merchant, 'payin'), payinId }
    const { by, reason } = options
    const { utr } = good(readRecovery({ utr: options.utr }))
    const recovered = await collecting(config, key.merchantId, (deps) =>
      recoverPayin(key, utr, deps, { by, reason }),
    )
    if (recovered.kind === 'no-such-payin') throw noSuchPayin(key)
    if (recovered.kind === 'other-settings') throw otherSettings(key.merchantId)
    const { outcome, message } = recoveryOutcome(recovered)
    if (outcome !== 'submitted') throw new ExpectedFailure(message)
    print(options.json ? payinJson(recovered.payin, 2) : `${message}\n${payinText(inLines(recovered.payin))}`)
  })

const review = new Command('review')
  .description('list payins in review with their evidence, the oldest first')
  .option('--merchant <id>', WHOSE_PAYIN)
  .option('--limit <count>', 'the most to show', countOf, 100)
  .option('--json', 'print one JSON object per line; amounts in paise, times in milliseconds since 1970')
  .action(async ({ merchant, limit, json }: { merchant?: string; limit: number; json?: true }) => {
    const config = readConfig(process.env)
    const merchantId = await merchantOf(config, merchant, 'payin')
    const found = await withDatabase(config, (db) => payinsInReview(db, { merchantId, limit: limit + 1 }))
    const shown = found.slice(0, limit)
    if (json) for (const each of shown) print(payinJson(each))
    else if (shown.length === 0) print('no payin is in review')
    else print(shown.map((each) => payinReviewText(inLines(each))).join('\n\n'))
    if (found.length > limit) note(`there are more; --limit ${limit} shows only the first`)
  })

export const payinCommand = new Command('payin')
  .addCommand(create)
  .addCommand(show)
  .addCommand(review)
  .addCommand(resolveCommand)
  .addCommand(recover)

async function collecting<T>(
  config: Config,
  merchantId: string,
  work: (deps: CollectDeps) => Promise<T>,
): Promise<T> {
  if (!config.merchants.has(merchantId)) {
    throw new ExpectedFailure(`merchant ${merchantId} is not in the settings`)
  }
  const lifecycle = new Lifecycle(createLogger({ name: 'payoutd', level: config.logLevel, destination: 2 }))
  try {
    return await work(await openCollecting(config, lifecycle))
  } finally {
    await lifecycle.stop()
  }
}

function good<T>(read: ReadRequest<T>): T {
  if (read.kind === 'good') return read.value
  throw new ExpectedFailure(read.faults.map(({ field, message }) => `${field} ${message}`).join('\n'))
}

/** Draws on stderr, so that a program still finds only JSON in stdout. */
async function drawQr(payin: Payin): Promise<void> {
  const text = qrText(payin)
  if (text === null) note(`no QR code: the payin is ${payin.state}`)
  else noteDrawing(await qrTerminal(text))
}
