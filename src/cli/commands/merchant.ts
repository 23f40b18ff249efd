import { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import { formatTime } from '../../domain/times.ts'
import { accountIdsOf, accountOf } from '../../gateway/dialect/account.ts'
import { promisesOf } from '../../gateway/dialect/dialect.ts'
import { topicNames } from '../../messages/topics.ts'
import {
  type Adopted,
  adoptSettings,
  countWithdrawn,
  openAccounts,
  previewAdopt,
} from '../../operators/gateway-settings.ts'
import { pauseMerchant, resumeMerchant } from '../../operators/pause.ts'
import { earlierLedger } from '../../operators/restore/earlier-ledger.ts'
import { merchantOverviews, merchantTraffic } from '../../queries/merchant-overview.ts'
import { spendable, WARM } from '../../stages/dispatch/merchant-gate.ts'
import { adoptedText } from '../../views/gateway-settings-text.ts'
import { merchantsText, trafficText } from '../../views/merchant-text.ts'
import {
  type ActReport,
  confirmed,
  type DecisionOptions,
  reportDone,
  reportRefused,
  reportUndone,
  withDecision,
  withWho,
} from '../decision.ts'
import { unknownMerchant } from '../options/merchant-of.ts'
import { paiseAsText } from '../options/paise-as-text.ts'
import { inLines, note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'

export const merchantsCommand = new Command('merchants')
  .description(
    'list merchants with their state, circuit, balance, and what is queued, in flight and in review',
  )
  .option('--json', 'print one JSON object per line; amounts in paise, times in milliseconds since 1970')
  .action(async ({ json }: { json?: true }) => {
    const config = readConfig(process.env)
    const tell = json ? note : print
    await withDatabase(config, async (db) => {
      const overviews = await merchantOverviews(db, { spendable, warm: WARM })
      if (json) for (const each of overviews) print(JSON.stringify(each, paiseAsText))
      else if (overviews.length > 0) print(merchantsText(inLines(overviews)))
      const known = new Set(overviews.map(({ merchantId }) => merchantId))
      for (const merchantId of config.merchants.keys()) {
        if (!known.has(merchantId)) tell(`${merchantId} has sent nothing: dispatch has never run for it`)
      }
      for (const merchantId of known) {
        if (!config.merchants.has(merchantId)) {
          tell(
            `${merchantId} is not in the settings of this command: a payoutd with the same settings sends no payouts and no queries for it`,
          )
        }
      }
    })
  })

export const pauseCommand = withWho(
  new Command('pause')
    .description('stop sending payouts of a merchant; payoutd still follows those it has sent')
    .argument('<merchant>'),
).action(async (merchantId: string, { reason, by }: { reason: string; by: string }) => {
  const config = readConfig(process.env)
  await withDatabase(config, async (db) => {
    const feeEstimate = config.merchants.get(merchantId)?.feeEstimate ?? null
    const outcome = inLines(await pauseMerchant(db, { merchantId, by, reason, feeEstimate }))
    switch (outcome.kind) {
      case 'unknown':
        throw unknownMerchant(merchantId, config)
      case 'already': {
        const { pausedBy, pausedAt, pausedReason } = outcome
        print(
          `${merchantId} is already paused, by ${pausedBy} since ${formatTime(pausedAt)}: ${pausedReason}`,
        )
        break
      }
      case 'paused':
        print(`${merchantId} is paused: payoutd sends no more of its payouts`)
    }
    print(trafficText(await merchantTraffic(db, merchantId)))
  })
})

export const resumeCommand = withWho(
  new Command('resume').description('send payouts of a paused merchant again').argument('<merchant>'),
).action(async (merchantId: string, { reason, by }: { reason: string; by: string }) => {
  const config = readConfig(process.env)
  await withDatabase(config, async (db) => {
    const outcome = inLines(await resumeMerchant(db, { merchantId, by, reason }))
    switch (outcome.kind) {
      case 'unknown':
        throw unknownMerchant(merchantId, config)
      case 'not-paused':
        print(`${merchantId} is not paused`)
        break
      case 'resumed': {
        const { pausedBy, pausedAt, pausedReason } = outcome
        print(
          `${merchantId} is resumed by ${by}; ${pausedBy} had paused it at ${formatTime(pausedAt)}: ${pausedReason}`,
        )
      }
    }
    print(trafficText(await merchantTraffic(db, merchantId)))
  })
})

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
    const configured = { merchantId, account: accountOf(merchant), feeEstimate: merchant.feeEstimate }
    const known = accountIdsOf(config.merchants).get(merchantId) ?? []
    await withDatabase(config, async (db) => {
      const told = async (adopted: Adopted): Promise<ActReport> => {
        const open = await openAccounts(db, merchantId)
        const withdrawn = await countWithdrawn(db, merchantId, promisesOf(merchant.dialect))
        return {
          text: adoptedText(merchantId, inLines(adopted), open, known, withdrawn),
          json: { merchantId, ...adopted, open, withdrawn },
        }
      }
      const would = await previewAdopt(db, configured)
      if (would.kind === 'unchanged') return reportUndone(await told(would), options)
      if (!(await confirmed(await told(would), options))) return
      const earlier = earlierLedger(config.kafka, topicNames(config.topicPrefix))
      const did = await adoptSettings(db, configured, options, earlier, would.before)
      if (did.kind === 'moved') reportRefused(await told(did), options)
      else reportDone(await told(did), options)
    })
  })

export const merchantCommand = new Command('merchant')
  .description('change the gateway settings in force for a merchant')
  .addCommand(adoptCommand)
