import { Command } from 'commander'
import { readConfig } from '../../config/config.ts'
import { formatTime } from '../../domain/times.ts'
import { type Acknowledged, acknowledgeAnomalies, previewAcknowledge } from '../../operators/acknowledge.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { findAnomaly } from '../../queries/anomalies.ts'
import { anomaliesOf } from '../../queries/sql/anomalies.ts'
import { anomalyListText, anomalyText } from '../../views/anomaly-text.ts'
import { decideInDatabase } from '../decide.ts'
import { type ActReport, type DecisionOptions, withDecision } from '../decision.ts'
import { countOf } from '../options/count-of.ts'
import { merchantOf } from '../options/merchant-of.ts'
import { inLines, note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'

const WHOSE = 'the merchant of the anomaly; you can omit it if there is only one merchant'

const list = new Command('list')
  .description('list anomalies: those not acknowledged come first, the oldest of them on top')
  .option('--merchant <id>', WHOSE)
  .option('--limit <count>', 'the most to show', countOf, 100)
  .option('--json', 'print one JSON object per line; times in milliseconds since 1970')
  .action(async ({ merchant, limit, json }: { merchant?: string; limit: number; json?: true }) => {
    const config = readConfig(process.env)
    const merchantId = await merchantOf(config, merchant, 'anomaly')
    const found = await withDatabase(config, (db) => db.run(anomaliesOf, { merchantId, limit: limit + 1 }))
    const shown = found.slice(0, limit)
    if (json) for (const anomaly of shown) print(JSON.stringify(anomaly))
    else print(shown.length > 0 ? anomalyListText(inLines(shown)) : 'none')
    if (found.length > limit) note(`there are more; --limit ${limit} shows only the first`)
  })

const show = new Command('show')
  .description('show one anomaly, with the request and answer as they went over the wire')
  .argument('<id>', 'the id that payoutd anomaly list shows, which is the ce_id of the message')
  .option('--merchant <id>', WHOSE)
  .option('--json', 'print JSON; times in milliseconds since 1970')
  .action(async (id: string, { merchant, json }: { merchant?: string; json?: true }) => {
    const config = readConfig(process.env)
    const merchantId = await merchantOf(config, merchant, 'anomaly')
    const anomaly = await withDatabase(config, (db) => findAnomaly(db, merchantId, id))
    if (!anomaly) throw new ExpectedFailure(`merchant ${merchantId} has no anomaly ${id}`)
    print(json ? JSON.stringify(anomaly, null, 2) : anomalyText(inLines(anomaly)))
  })

const acknowledge = withDecision(
  new Command('acknowledge')
    .description('record that a person has looked at anomalies; earlier acknowledgements stay as they are')
    .argument('<ids...>', 'the ids that payoutd anomaly list shows')
    .option('--merchant <id>', WHOSE),
).action(async (anomalyIds: string[], options: DecisionOptions & { merchant?: string }) => {
  const config = readConfig(process.env)
  const merchantId = await merchantOf(config, options.merchant, 'anomaly')
  const { by, reason } = options
  const isAcknowledged = ({ kind }: Acknowledged) => kind === 'acknowledged'
  const isKnown = ({ kind }: Acknowledged) => kind !== 'unknown'
  const isDone = ({ kind }: Acknowledged) => kind === 'acknowledged' || kind === 'already'
  await decideInDatabase(config, options, {
    find: async () => ({ merchantId, anomalyIds, by, reason }),
    // Ask if some can be acknowledged; the act is done when all are.
    async preview(request, db) {
      const expected = await previewAcknowledge(request, db)
      const isAny = expected.some(isAcknowledged)
      const shown = { ...request, shown: expected }
      return { ...reportOf(expected, 'would be'), isDone: isAny, isSoAlready: expected.every(isKnown), shown }
    },
    async execute(request, db) {
      const outcomes = await acknowledgeAnomalies(request, db)
      return { ...reportOf(outcomes, 'is'), isDone: outcomes.every(isDone) }
    },
  })
})

export const anomalyCommand = new Command('anomaly').addCommand(list).addCommand(show).addCommand(acknowledge)

const reportOf = (outcomes: readonly Acknowledged[], be: 'is' | 'would be'): ActReport => ({
  text: inLines(outcomes)
    .map((each) => `anomaly ${each.anomalyId} ${inWords(each, be)}`)
    .join('\n'),
  json: { anomalies: outcomes },
})

/** Completes "anomaly 7c… …". */
function inWords(outcome: Acknowledged, be: 'is' | 'would be'): string {
  switch (outcome.kind) {
    case 'acknowledged':
      return `${be} acknowledged`
    case 'already':
      return `was already acknowledged, by ${outcome.by} at ${formatTime(outcome.at)}`
    case 'more':
      return `stays open: it counts ${outcome.times} reports by now, more than you were shown; look at it again`
    case 'unknown':
      return 'does not exist: payoutd anomaly list shows all'
  }
}
