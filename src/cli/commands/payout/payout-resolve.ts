import { Command, InvalidArgumentError, Option } from 'commander'
import { type Config, readConfig } from '../../../config/config.ts'
import type { ResendTerms, Resolution, ResolveRefusal, ShownPayout } from '../../../domain/payout/resolve.ts'
import type { State } from '../../../domain/payout/states.ts'
import { formatTime } from '../../../domain/times.ts'
import { accountOf } from '../../../gateway/dialect/account.ts'
import { promisesOf } from '../../../gateway/dialect/dialect.ts'
import {
  previewResolve,
  type ResolveOutcome,
  type ResolveRequest,
  resolvePayout,
} from '../../../operators/resolve-payout.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import { areThere } from '../../../queries/other-payments.ts'
import { type PayoutStory, tellPayout } from '../../../queries/payout-story.ts'
import { requestText } from '../../../queries/request.ts'
import { lastWord } from '../../../queries/review.ts'
import { tellThem } from '../../../views/anomaly-text.ts'
import { otherPaymentsText, unseenText } from '../../../views/other-payments-text.ts'
import { resendCommand } from '../../../views/resend-command.ts'
import { lastWordText } from '../../../views/review-text.ts'
import { type DecisionResult, decide } from '../../decide.ts'
import { type DecisionOptions, nameOf, withDecision } from '../../decision.ts'
import { merchantOf, payPeriodOf } from '../../options/merchant-of.ts'
import { momentOf } from '../../options/moment-of.ts'
import { utrOf, utrTakenText } from '../../options/utr-of.ts'
import { inLines } from '../../print.ts'
import { PAYOUT_ID, payoutOf, WHOSE_PAYOUT } from './payout-of.ts'

type ResolvePayoutOptions = DecisionOptions & {
  merchant?: string
  paid?: true
  utr?: string
  failed?: true
  resend?: true
  attempt?: number
  confirmedAbsentBy?: string
  deadline?: number
  besides?: string[]
}

export const resolveCommand = withDecision(
  new Command('resolve')
    .description('record what a person decides about a payout in review')
    .argument('<id>', PAYOUT_ID)
    .option('--merchant <id>', WHOSE_PAYOUT)
    .addOption(new Option('--paid', 'it was paid; needs --utr').conflicts(['failed', 'resend']))
    .option('--utr <utr>', 'the transfer’s reference, from the bank or the gateway’s support', utrOf)
    .addOption(new Option('--failed', 'it was not paid and will not be').conflicts('resend'))
    .option('--resend', 'send it again under the same order number')
    .option(
      '--attempt <number>',
      'for --failed and --resend: the attempt that you decide about, as payoutd payout show shows it; needed with --yes',
      attemptOf,
    )
    .option(
      '--confirmed-absent-by <name>',
      'for --resend: the person at the gateway who confirmed that it has no such order',
      nameOf,
    )
    .option(
      '--deadline <moment>',
      'for --resend: a new deadline; without it, a payout past its deadline gets the merchant’s usual one from now',
      momentOf,
    )
    .option(
      '--besides <payoutIds...>',
      'for --resend with --yes: other payouts of the same amount to the same beneficiary that you know of',
    ),
).action(async (id: string, options: ResolvePayoutOptions) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'payout')
  const resolutionOf = resolutionIn(options, config, merchantId)
  const { by, reason, resend, besides, yes } = options
  if (besides && !(resend && yes)) throw new ExpectedFailure('--besides needs --resend and --yes')
  const lookForOthers = { payPeriod: payPeriodOf(config, merchantId), known: yes ? (besides ?? []) : null }
  await decide(config, options, {
    find: async (db) => {
      const { key } = await payoutOf(db, merchantId, id)
      const { payout } = await tellPayout(db, key, config.sealing)
      const request = { ...key, by, reason, resolution: resolutionOf(payout), shown: null }
      return resend ? { ...request, lookForOthers } : request
    },
    async preview(request, db) {
      const outcome = await previewResolve(request, db)
      const would = await withWhatIsKnown(reportOf(request, outcome, 'would be'), db, request, config)
      return { ...would, shown: { ...request, shown: outcome.kind === 'resolved' ? outcome.shown : null } }
    },
    execute: async (request, ledger) => reportOf(request, await resolvePayout(request, ledger), 'is'),
  })
})

function attemptOf(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

type ResolvedPayout = Pick<PayoutStory['payout'], 'attempt' | 'cancelRequest'>

/** The decision about the payout that is found. */
function resolutionIn(
  options: ResolvePayoutOptions,
  config: Config,
  merchantId: string,
): (payout: ResolvedPayout) => Resolution {
  const { paid, utr, failed, resend, attempt, confirmedAbsentBy, deadline } = options
  if (paid !== true && utr !== undefined) throw new ExpectedFailure('--utr needs --paid')
  if (resend !== true && (confirmedAbsentBy ?? deadline) !== undefined) {
    throw new ExpectedFailure('--confirmed-absent-by and --deadline need --resend')
  }
  if (paid) {
    if (utr === undefined) throw new ExpectedFailure('--paid needs --utr, the transfer’s reference')
    if (attempt !== undefined) throw new ExpectedFailure('--attempt needs --failed or --resend')
    return () => ({ kind: 'paid', utr })
  }
  if (!failed && !resend) throw new ExpectedFailure('which decision? give --paid, --failed or --resend')
  const unasked = options.yes === true && options.dryRun !== true
  if (unasked && attempt === undefined) {
    throw new ExpectedFailure(
      `with --yes, --${failed ? 'failed' : 'resend'} needs --attempt, the attempt that you decide about, as payoutd payout review shows it`,
    )
  }
  if (failed) return (payout) => ({ kind: 'failed', attempt: attempt ?? payout.attempt })
  const merchant = config.merchants.get(merchantId)
  if (!merchant)
    throw new ExpectedFailure(`payoutd sends nothing for ${merchantId}: it is not in the settings`)
  const { accountId, settingsHash } = accountOf(merchant)
  const terms = {
    accountId,
    settingsHash,
    ...promisesOf(merchant.dialect),
    deadlineMs: merchant.deadlineMs,
  }
  return ({ cancelRequest, ...payout }) => ({
    kind: 'resend',
    attempt: attempt ?? payout.attempt,
    confirmedAbsentBy: confirmedAbsentBy ?? null,
    deadline: deadline ?? null,
    // With --yes nobody is shown it.
    cancelRequest: unasked ? null : cancelRequest,
    terms,
  })
}

/** Adds what the person who decides should know: how much it is and for whom, the gateway's last report, the consequences. */
async function withWhatIsKnown(
  would: DecisionResult,
  db: Database,
  request: ResolveRequest,
  { sealing }: Config,
): Promise<DecisionResult> {
  const { resolution } = request
  const story = await tellPayout(db, request, sealing)
  const { cancelRequest } = story.payout
  const word = lastWord(story)
  const lines = [
    requestText(inLines(story)),
    ...(resolution.kind === 'resend' ? [duplicatesText(resolution.terms)] : []),
    lastWordText(inLines(word), inLines(story)),
    ...(cancelRequest === null ? [] : [inLines(`somebody asked to cancel it (${cancelRequest})`)]),
    ...(story.isFenced && resolution.kind !== 'failed' ? [FENCED] : []),
    ...(resolution.kind === 'resend' ? toKnowBeforeSending(story, resolution) : []),
    ...(would.isDone ? [CONSEQUENCE[resolution.kind]] : []),
  ]
  const promised = resolution.kind === 'resend' && { duplicatesRefused: resolution.terms.duplicatesRefused }
  return {
    ...would,
    text: [would.text, ...lines.map((line) => `  ${line}`)].join('\n'),
    json: { ...would.json, beneficiary: story.beneficiary, ...promised, lastWord: word },
  }
}

const FENCED =
  'its merchant is fenced because the ledger was set back: it may have been sent and paid since; payoutd recover finds out'
const FENCED_REFUSAL =
  'stays in review: its merchant is fenced because the ledger was set back, so it may have been sent and paid since; run payoutd recover, which asks the gateway about it, and decide then'

const duplicatesText = ({ duplicatesRefused }: ResendTerms): string =>
  duplicatesRefused
    ? 'the gateway promised to refuse a second order with the same number (duplicateApply: refused)'
    : 'the gateway has not promised to refuse a second order with the same number (duplicateApply: unknown)'

function toKnowBeforeSending(
  { payout }: PayoutStory,
  { attempt, confirmedAbsentBy }: Extract<Resolution, { kind: 'resend' }>,
): string[] {
  const confirmed = confirmedAbsentBy === null ? '' : ' --confirmed-absent-by …'
  return [
    `to do this without a question: ${resendCommand({ ...payout, attempt })}${confirmed} --by … --reason … --yes`,
  ]
}

const CONSEQUENCE: Record<Resolution['kind'], string> = {
  paid: 'payoutd publishes this, and you cannot undo it',
  failed: 'payoutd publishes this, and you cannot undo it: whoever requested the payout may pay it again',
  resend: 'payoutd publishes this, and you cannot undo it once the payout is sent',
}

function reportOf(
  { payoutId, lookForOthers }: ResolveRequest,
  outcome: ResolveOutcome,
  be: 'is' | 'would be',
): DecisionResult {
  const json = { payoutId, ...outcome }
  switch (outcome.kind) {
    case 'resolved': {
      const { kind, payout } = outcome
      const { otherPayments } = outcome.shown
      const besides = areThere(otherPayments) ? `; by now ${otherPaymentsText(otherPayments)}` : ''
      const { state, utr, reason, orderNo, deadline, ready, dueAt } = payout
      const from = ready || dueAt === null ? '' : ` from ${formatTime(dueAt)}`
      const what =
        state === 'paid'
          ? `paid, with UTR ${utr}`
          : state === 'failed'
            ? `failed: ${reason}`
            : `queued to be sent again under order ${orderNo}${from}, until ${formatTime(deadline)}`
      return {
        text: `payout ${payoutId} ${be} ${what}${besides}`,
        json: { payoutId, kind, payout, ...(lookForOthers && { otherPayments }) },
        isDone: true,
      }
    }
    case 'unseen':
      return {
        text: `payout ${payoutId} is not sent again: ${unseenText(outcome.otherPayments)}`,
        json,
        isDone: false,
      }
    case 'refused':
      return {
        text: `payout ${payoutId} ${inWords(outcome.refusal, outcome.contradictedBy)}`,
        json,
        isDone: false,
      }
    case 'utr-taken': {
      const { utr, takenBy } = outcome
      const other = { ...takenBy, id: takenBy.payoutId }
      return { text: utrTakenText('payout', payoutId, utr, other), json, isDone: false }
    }
    case 'unknown':
      return { text: `payout ${payoutId} is no longer in the ledger`, json, isDone: false }
  }
}

const ASK_THEM =
  'ask its support; if they confirm that there is no such order, give that person’s name with --confirmed-absent-by'

function inWords(refusal: ResolveRefusal, contradictedBy: readonly string[]): string {
  switch (refusal.kind) {
    case 'not-in-review':
      return `is ${refusal.state}, and you can resolve only a payout in review: ${instead(refusal.state, contradictedBy)}`
    case 'moved':
      return `stays in review: ${meanwhile(refusal.shown, refusal.now)} after you saw it; look at it again`
    case 'other-attempt':
      return `stays in review: you decide about attempt ${refusal.attempt}, but the latest is attempt ${refusal.latest}, and your decision says nothing about that one`
    case 'resent-before':
      return `stays in review: it was sent again after attempt ${refusal.attempt} before, and came back since; look at it again, and run the command without --yes`
    case 'gateway-had-it':
      return `cannot be sent again: the gateway had this order${refusal.agentpayOrderId === null ? '' : ` as ${refusal.agentpayOrderId}`}; ${ASK_THEM}`
    case 'sent-elsewhere':
      return `cannot be sent again: it was sent to another gateway account, which may have it; ${ASK_THEM}`
    case 'duplicates-not-refused':
      return `cannot be sent again: the gateway may have it, and might pay it twice; ${ASK_THEM}`
    case 'account-not-known':
      return `cannot be sent again: the ledger lost an attempt, and any gateway account may still have it; ${ASK_THEM}`
    case 'fenced':
      return FENCED_REFUSAL
    case 'other-settings':
      return 'cannot be sent again with these settings: others are in force for its merchant. Use those, or run payoutd merchant adopt first to put these into force'
    case 'to-be-cancelled':
      return `is not sent again: somebody asked to cancel it (${refusal.cancelRequest}); to send it anyway, run the command without --yes`
    case 'deadline-over':
      return `cannot be sent again: its deadline ${formatTime(refusal.deadline)} has passed, or is before it may be sent; give a later --deadline`
  }
}

function meanwhile(shown: ShownPayout, now: ShownPayout): string {
  if (shown.attempt !== now.attempt) return `payoutd made attempt ${now.attempt}`
  if (now.cancelRequest !== null && shown.cancelRequest !== now.cancelRequest) {
    return `somebody asked to cancel it (${now.cancelRequest})`
  }
  return 'it changed, more evidence came, or what else pays the same changed'
}

function instead(state: State, contradictedBy: readonly string[]): string {
  switch (state) {
    case 'held':
    case 'queued':
      return 'it waits to be sent; payoutd payout cancel stops it'
    case 'submitting':
    case 'unknown':
    case 'processing':
      return 'payoutd is finding out its outcome, and puts it in review if it cannot'
    case 'paid':
      return contradictedBy.length === 0
        ? 'it has ended; if its money comes back, the gateway has to say so first, and you confirm it with payoutd payout reverse'
        : `it has ended as paid, but the gateway also said that it failed (anomaly ${contradictedBy.join(', ')}): if its money came back, confirm it with payoutd payout reverse`
    case 'failed':
    case 'rejected':
    case 'cancelled':
      return contradictedBy.length === 0
        ? 'it has ended'
        : `it has ended as ${state}, but the gateway also said that it was paid or may still be paid (anomaly ${contradictedBy.join(', ')}); ${tellThem(state)}`
    case 'review':
      return 'it has ended'
  }
}
