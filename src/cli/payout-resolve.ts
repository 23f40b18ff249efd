import { Command, InvalidArgumentError, Option } from 'commander'
import { type Config, readConfig } from '../config/config.ts'
import { accountOf } from '../gateway/account.ts'
import { TELL_THEM } from '../operations/anomaly-text.ts'
import { askedForText } from '../operations/asked-for.ts'
import { tellPayout } from '../operations/payout-story.ts'
import {
  previewResolve,
  type ResolveOutcome,
  type ResolveRequest,
  resolvePayout,
} from '../operations/resolve-payout.ts'
import { lastWord } from '../operations/review.ts'
import { lastWordText } from '../operations/review-text.ts'
import { formatTime } from '../operations/times.ts'
import { isUtr, type Refusal, type ResendTerms, type Resolution } from '../payout/resolve.ts'
import type { State } from '../payout/states.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database } from '../platform/postgres.ts'
import { decide, type Result } from './decide.ts'
import { type DecisionOptions, nameOf, withDecision } from './decision.ts'
import { merchantOf } from './merchant-of.ts'
import { momentOf } from './moment-of.ts'
import { PAYOUT_ID, payoutOf, WHOSE_PAYOUT } from './payout-of.ts'
import { inLines } from './print.ts'

type ResolveOptions = DecisionOptions & {
  merchant?: string
  paid?: true
  utr?: string
  failed?: true
  resend?: true
  confirmedAbsentBy?: string
  deadline?: number
}

export const resolveCommand = withDecision(
  new Command('resolve')
    .description('record what a person decides about a payout in review')
    .argument('<id>', PAYOUT_ID)
    .option('--merchant <id>', WHOSE_PAYOUT)
    .addOption(new Option('--paid', 'it was paid; wants --utr').conflicts(['failed', 'resend']))
    .option(
      '--utr <utr>',
      'the reference of the transfer, as the bank or the gateway’s people tell it',
      utrOf,
    )
    .addOption(new Option('--failed', 'it was not paid and will not be').conflicts('resend'))
    .option('--resend', 'send it again under the same order number')
    .option(
      '--confirmed-absent-by <name>',
      'for --resend: who of the gateway’s people confirmed that they have no such order',
      nameOf,
    )
    .option(
      '--deadline <moment>',
      'for --resend: a new one; without it, the merchant’s usual one from now if that of the payout is over',
      momentOf,
    ),
).action(async (id: string, options: ResolveOptions) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'payout')
  const resolution = resolutionOf(options, config, merchantId)
  const { by, reason } = options
  await decide(config, options, {
    find: async (db) => ({ ...(await payoutOf(db, merchantId, id)).key, by, reason, resolution }),
    preview: async (request, db) =>
      withWhatIsKnown(told(request, await previewResolve(request, db), 'would be'), db, request, config),
    deed: async (request, ledger) => told(request, await resolvePayout(request, ledger), 'is'),
  })
})

function utrOf(text: string): string {
  if (!isUtr(text)) throw new InvalidArgumentError('It must be 1 to 30 letters, digits and hyphens.')
  return text
}

function resolutionOf(options: ResolveOptions, config: Config, merchantId: string): Resolution {
  const { paid, utr, failed, resend, confirmedAbsentBy, deadline } = options
  if (paid !== true && utr !== undefined) throw new ExpectedFailure('--utr belongs to --paid')
  if (resend !== true && (confirmedAbsentBy ?? deadline) !== undefined) {
    throw new ExpectedFailure('--confirmed-absent-by and --deadline belong to --resend')
  }
  if (paid) {
    if (utr === undefined) throw new ExpectedFailure('--paid wants --utr, the reference of the transfer')
    return { kind: 'paid', utr }
  }
  if (failed) return { kind: 'failed' }
  if (!resend) throw new ExpectedFailure('what was decided? give --paid, --failed or --resend')
  const merchant = config.merchants.get(merchantId)
  if (!merchant) throw new ExpectedFailure(`nothing is sent for ${merchantId}: it is not in the settings`)
  const terms = {
    accountId: accountOf(merchant).accountId,
    duplicatesRefused: merchant.dialect.duplicateApply === 'refused',
    deadlineMs: merchant.deadlineMs,
  }
  return { kind: 'resend', confirmedAbsentBy: confirmedAbsentBy ?? null, deadline: deadline ?? null, terms }
}

/** What a person should know who decides: for how much and whom it is, what the gateway last said, what follows. */
async function withWhatIsKnown(
  would: Result,
  db: Database,
  request: ResolveRequest,
  { sealing }: Config,
): Promise<Result> {
  const { resolution } = request
  const story = await tellPayout(db, request, sealing)
  const word = lastWord(story)
  const lines = [
    askedForText(inLines(story)),
    ...(resolution.kind === 'resend' ? [duplicatesText(resolution.terms)] : []),
    lastWordText(inLines(word), inLines(story)),
    ...(would.isDone ? [CONSEQUENCE[resolution.kind]] : []),
  ]
  const promised = resolution.kind === 'resend' && { duplicatesRefused: resolution.terms.duplicatesRefused }
  return {
    ...would,
    text: [would.text, ...lines.map((line) => `  ${line}`)].join('\n'),
    json: { ...would.json, beneficiary: story.beneficiary, ...promised, lastWord: word },
  }
}

const duplicatesText = ({ duplicatesRefused }: ResendTerms): string =>
  duplicatesRefused
    ? 'the gateway has promised to refuse a second order of the same number (duplicateApply: refused)'
    : 'nobody has promised that the gateway refuses a second order of the same number (duplicateApply: unknown)'

const CONSEQUENCE: Record<Resolution['kind'], string> = {
  paid: 'that is published, and cannot be taken back',
  failed: 'that is published, and cannot be taken back: whoever asked for it may pay it again',
  resend: 'that is published, and cannot be taken back once it is sent',
}

function told({ payoutId }: ResolveRequest, outcome: ResolveOutcome, be: 'is' | 'would be'): Result {
  const json = { payoutId, ...outcome }
  switch (outcome.kind) {
    case 'resolved': {
      const { state, utr, reason, orderNo, deadline } = outcome.payout
      const what =
        state === 'paid'
          ? `paid, with UTR ${utr}`
          : state === 'failed'
            ? `failed: ${reason}`
            : `queued to be sent again under order ${orderNo}, until ${formatTime(deadline)}`
      return { text: `payout ${payoutId} ${be} ${what}`, json, isDone: true }
    }
    case 'refused':
      return {
        text: `payout ${payoutId} ${inWords(outcome.refusal, outcome.contradictedBy)}`,
        json,
        isDone: false,
      }
    case 'utr-taken': {
      const { utr, takenBy } = outcome
      const other = `payout ${takenBy.payoutId} of ${takenBy.merchantId}`
      const text = `payout ${payoutId} cannot be paid with UTR ${utr}: ${other} has that, and each transfer has its own`
      return { text, json, isDone: false }
    }
    case 'unknown':
      return { text: `payout ${payoutId} is gone from the ledger`, json, isDone: false }
  }
}

const ASK_THEM = 'ask its people, and if they have no such order give their name with --confirmed-absent-by'

function inWords(refusal: Refusal, contradictedBy: readonly string[]): string {
  switch (refusal.kind) {
    case 'not-in-review':
      return `is ${refusal.state}, and only what is in review can be resolved: ${instead(refusal.state, contradictedBy)}`
    case 'gateway-had-it':
      return `cannot be sent again: the gateway had it as ${refusal.agentpayOrderId}; ${ASK_THEM}`
    case 'sent-elsewhere':
      return `cannot be sent again: it was sent to another gateway account, which may have it; ${ASK_THEM}`
    case 'duplicates-not-refused':
      return `cannot be sent again: the gateway may have it, and pay it twice; ${ASK_THEM}`
    case 'deadline-over':
      return `cannot be sent again: ${formatTime(refusal.deadline)} is over; give a later --deadline`
  }
}

function instead(state: State, contradictedBy: readonly string[]): string {
  switch (state) {
    case 'held':
    case 'queued':
      return 'it waits to be sent, and payoutd payout cancel stops it'
    case 'submitting':
    case 'unknown':
    case 'processing':
      return 'its outcome is being found out, and it comes to review if that fails'
    case 'paid':
      return contradictedBy.length === 0
        ? 'it has ended; should its money come back, the gateway has to say so, and payoutd payout reverse confirms it'
        : `it has ended, but the gateway said later that it failed (anomaly ${contradictedBy.join(', ')}): if its money came back, payoutd payout reverse confirms it`
    case 'failed':
      return contradictedBy.length === 0
        ? 'it has ended'
        : `it has ended, but the gateway said later that it was paid (anomaly ${contradictedBy.join(', ')}); ${TELL_THEM}`
    case 'review':
    case 'rejected':
    case 'cancelled':
      return 'it has ended'
  }
}
