import { Command, Option } from 'commander'
import { readConfig } from '../../../config/config.ts'
import type { PayinResolution } from '../../../domain/payin/resolve.ts'
import {
  type PayinResolveOutcome,
  type PayinResolveRequest,
  previewResolve,
  resolvePayin,
} from '../../../operators/resolve-payin.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import { payinStoryText } from '../../../views/payin-text.ts'
import { type DecisionResult, decide } from '../../decide.ts'
import { type DecisionOptions, withDecision } from '../../decision.ts'
import { merchantOf } from '../../options/merchant-of.ts'
import { utrOf, utrTakenText } from '../../options/utr-of.ts'
import { inLines } from '../../print.ts'
import { payinOf, WHOSE_PAYIN } from './payin-of.ts'

type ResolvePayinOptions = DecisionOptions & { merchant?: string; paid?: true; utr?: string; failed?: true }

export const resolveCommand = withDecision(
  new Command('resolve')
    .description('record what a person decides about a payin in review')
    .argument('<payinId>')
    .option('--merchant <id>', WHOSE_PAYIN)
    .addOption(new Option('--paid', 'the payer paid; needs --utr').conflicts('failed'))
    .option('--utr <utr>', 'the payment’s reference, from the bank or the gateway’s support', utrOf)
    .option('--failed', 'the payer did not pay'),
).action(async (payinId: string, options: ResolvePayinOptions) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'payin')
  const { by, reason } = options
  const request = { merchantId, payinId, by, reason, resolution: resolutionOf(options), shown: null }
  await decide(config, options, {
    find: async () => request,
    async preview(request, db) {
      const outcome = await previewResolve(request, db)
      const story = await payinOf(db, request)
      const would = reportOf(request, outcome, 'would be')
      const shown = { ...request, shown: outcome.kind === 'resolved' ? outcome.shown : null }
      const follows = would.isDone ? `: ${CONSEQUENCE[request.resolution.kind]}` : ''
      return { ...would, shown, text: `${payinStoryText(inLines(story))}\n\n${would.text}${follows}` }
    },
    execute: async (request, ledger) => reportOf(request, await resolvePayin(request, ledger), 'is'),
  })
})

function resolutionOf({ paid, utr, failed }: ResolvePayinOptions): PayinResolution {
  if (paid !== true && utr !== undefined) throw new ExpectedFailure('--utr needs --paid')
  if (paid) {
    if (utr === undefined) throw new ExpectedFailure('--paid needs --utr, the payment’s reference')
    return { kind: 'paid', utr }
  }
  if (!failed) throw new ExpectedFailure('which decision? give --paid or --failed')
  return { kind: 'failed' }
}

const CONSEQUENCE: Record<PayinResolution['kind'], string> = {
  paid: 'payoutd publishes this, and you cannot undo it',
  failed: 'payoutd publishes this; if the gateway later says that it was paid, it becomes paid',
}

function reportOf(
  { payinId, merchantId }: PayinResolveRequest,
  outcome: PayinResolveOutcome,
  be: 'is' | 'would be',
): DecisionResult {
  const json = { payinId, ...outcome }
  switch (outcome.kind) {
    case 'resolved': {
      const { kind, payin } = outcome
      const { state, utr, reason } = payin
      const what = state === 'paid' ? `paid, with UTR ${utr}` : `failed: ${reason}`
      return { text: `payin ${payinId} ${be} ${what}`, json: { payinId, kind, payin }, isDone: true }
    }
    case 'not-in-review': {
      const text = `payin ${payinId} is ${outcome.state}, and you can resolve only a payin in review`
      return { text, json, isDone: false }
    }
    case 'moved': {
      const text = `payin ${payinId} stays in review: it changed, or more evidence came, after you saw it; look at it again`
      return { text, json, isDone: false }
    }
    case 'utr-taken': {
      const { utr, takenBy } = outcome
      const other = { ...takenBy, id: takenBy.payinId }
      return { text: utrTakenText('payin', payinId, utr, other), json, isDone: false }
    }
    case 'unknown':
      return { text: `merchant ${merchantId} has no payin ${payinId}`, json, isDone: false }
  }
}
