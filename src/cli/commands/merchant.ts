import { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import { formatTime } from '../../domain/times.ts'
import { accountIdsOf, withAccount } from '../../gateway/dialect/account.ts'
import { promisesOf } from '../../gateway/dialect/dialect.ts'
import { topicNames } from '../../messages/topics.ts'
import {
  type Adopted,
  adoptSettings,
  countWithdrawn,
  previewAdopt,
} from '../../operators/gateway-settings.ts'
import {
  type PauseOutcome,
  pauseMerchant,
  previewPause,
  previewResume,
  type ResumeOutcome,
  resumeMerchant,
} from '../../operators/pause.ts'
import { earlierLedger } from '../../operators/recovery/earlier-ledger.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { merchantOverviews, merchantTraffic } from '../../queries/merchant-overview.ts'
import { openByAccount } from '../../queries/open-by-account.ts'
import { leftOf } from '../../stages/dispatch/covered-by-balance.ts'
import { WARM } from '../../stages/dispatch/merchant-gate.ts'
import { adoptedText } from '../../views/gateway-settings-text.ts'
import { merchantsText, trafficText } from '../../views/merchant-text.ts'
import { type DecisionResult, decideInDatabase } from '../decide.ts'
import { type DecisionOptions, withDecision } from '../decision.ts'
import { unknownMerchant } from '../options/merchant-of.ts'
import { paiseAsText } from '../options/paise-as-text.ts'
import { inLines, note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'

export const merchantsCommand = new Command('merchants')
  .option('--json', 'print one JSON object per line; amounts in paise, times in milliseconds since 1970')
  .action(async ({ json }: { json?: true }) => {
    const config = readConfig(process.env)
    const printLine = json ? note : print
    await withDatabase(config, async (db) => {
      const overviews = await merchantOverviews(db, { leftOf, warm: WARM })
      if (json) for (const each of overviews) print(JSON.stringify(each, paiseAsText))
      else if (overviews.length > 0) print(merchantsText(inLines(overviews)))
      const known = new Set(overviews.map(({ merchantId }) => merchantId))
      for (const merchantId of config.merchants.keys()) {
        if (!known.has(merchantId)) printLine(`${merchantId} has sent nothing: dispatch has never run for it`)
      }
      for (const merchantId of known) {
        if (!config.merchants.has(merchantId)) {
          printLine(
            `${merchantId} is not in the settings of this command: a payoutd with the same settings sends no payouts and no queries for it`,
          )
        }
      }
    })
  })

export const pauseCommand = withDecision(new Command('pause').argument('<merchant>')).action(
  async (merchantId: string, options: DecisionOptions) => {
    const config = readConfig(process.env)
    const { by, reason } = options
    const reportOf = async (db: Database, outcome: PauseOutcome, be: 'is' | 'would be') => {
      if (outcome.kind === 'unknown') throw unknownMerchant(merchantId, config)
      const text = pauseText(merchantId, inLines(outcome), be)
      // Whoever resumes it is shown only the pause that stands.
      const isSoAlready = outcome.kind === 'already' && outcome.pausedBy === by
      return withTraffic(db, merchantId, text, outcome, { isDone: outcome.kind === 'paused', isSoAlready })
    }
    const feeEstimate = config.merchants.get(merchantId)?.feeEstimate ?? null
    await decideInDatabase(config, options, {
      find: async () => ({ merchantId, by, reason, feeEstimate }),
      preview: async (request, db) => ({
        ...(await reportOf(db, await previewPause(db, request), 'would be')),
        shown: request,
      }),
      execute: async (request, db) => reportOf(db, await pauseMerchant(db, request), 'is'),
    })
  },
)

export const resumeCommand = withDecision(new Command('resume').argument('<merchant>')).action(
  async (merchantId: string, options: DecisionOptions) => {
    const config = readConfig(process.env)
    const { by, reason } = options
    const reportOf = async (db: Database, outcome: ResumeOutcome, be: 'is' | 'would be') => {
      if (outcome.kind === 'unknown') throw unknownMerchant(merchantId, config)
      const text = resumeText(merchantId, by, inLines(outcome), be)
      const isSoAlready = outcome.kind === 'not-paused'
      return withTraffic(db, merchantId, text, outcome, { isDone: outcome.kind === 'resumed', isSoAlready })
    }
    await decideInDatabase(config, options, {
      find: async () => ({ merchantId, by, reason }),
      preview: async (request, db) => {
        const would = await previewResume(db, request)
        const shown = would.kind === 'resumed' ? { ...request, shown: would } : request
        return { ...(await reportOf(db, would, 'would be')), shown }
      },
      execute: async (request, db) => reportOf(db, await resumeMerchant(db, request), 'is'),
    })
  },
)

function pauseText(
  merchantId: string,
  outcome: Exclude<PauseOutcome, { kind: 'unknown' }>,
  be: 'is' | 'would be',
): string {
  if (outcome.kind === 'paused') return `${merchantId} ${be} paused: payoutd sends no more of its payouts`
  const { pausedBy, pausedAt, pausedReason } = outcome
  return `${merchantId} is already paused, by ${pausedBy} since ${formatTime(pausedAt)}: ${pausedReason}`
}

function resumeText(
  merchantId: string,
  by: string,
  outcome: Exclude<ResumeOutcome, { kind: 'unknown' }>,
  be: 'is' | 'would be',
): string {
  if (outcome.kind === 'not-paused') return `${merchantId} is not paused`
  const { pausedBy, pausedAt, pausedReason } = outcome
  if (outcome.kind === 'moved')
    return `${merchantId} stays paused, now by ${pausedBy} since ${formatTime(pausedAt)}: ${pausedReason}; this is not the pause that you were shown`
  return `${merchantId} ${be} resumed by ${by}; ${pausedBy} had paused it at ${formatTime(pausedAt)}: ${pausedReason}`
}

/** Adds what stands in the way of its payouts, and how many wait. */
async function withTraffic(
  db: Database,
  merchantId: string,
  text: string,
  json: object,
  done: Pick<DecisionResult, 'isDone' | 'isSoAlready'>,
): Promise<DecisionResult> {
  const traffic = await merchantTraffic(db, merchantId)
  return { text: `${text}\n${trafficText(traffic)}`, json: { merchantId, ...json, traffic }, ...done }
}

const adoptCommand = withDecision(
  new Command('adopt')
    .description(
      'put the gateway settings of this environment into force for a merchant: base URL, mchId, key and dialect',
    )
    .argument('<merchant>'),
)
  .addHelpText(
    'after',
    `
Processes with the former settings then send no more payouts of the merchant, but still query the gateway and take its
callbacks. Start processes with the new settings afterwards. Keep a former account in formerAccounts (and former keys in
formerKeys) until payoutd doctor says that nothing is open there and no transfer from there can come back: without the
account, payoutd would not learn of it.`,
  )
  .action(async (merchantId: string, options: DecisionOptions) => {
    const config = readConfig(process.env)
    const merchant = config.merchants.get(merchantId)
    if (!merchant) throw unknownMerchant(merchantId, config)
    const configured = withAccount(merchant)
    const known = accountIdsOf(config.merchants).get(merchantId) ?? []
    const reportOf = async (db: Database, adopted: Adopted): Promise<DecisionResult> => {
      const open = await openByAccount(db, merchantId)
      const withdrawn = await countWithdrawn(db, merchantId, promisesOf(merchant.dialect))
      return {
        text: adoptedText(merchantId, inLines(adopted), open, known, withdrawn),
        json: { merchantId, ...adopted, open, withdrawn },
        isDone: adopted.kind === 'adopted',
        isSoAlready: adopted.kind === 'unchanged',
      }
    }
    await decideInDatabase(config, options, {
      find: async () => configured,
      async preview(request, db) {
        const would = await previewAdopt(db, request)
        return { ...(await reportOf(db, would)), shown: would }
      },
      async execute(shown, db) {
        const earlier = earlierLedger(config.kafka, topicNames(config.topicPrefix))
        return reportOf(db, await adoptSettings(db, configured, options, earlier, shown))
      },
    })
  })

export const merchantCommand = new Command('merchant').addCommand(adoptCommand)
