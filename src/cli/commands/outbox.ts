import { Command, InvalidArgumentError } from 'commander'
import { readConfig } from '../../config/config.ts'
import { formatTime } from '../../domain/times.ts'
import { allRefused, retryMessages } from '../../operators/retry-messages.ts'
import { type RefusedMessage, refusedAmong, refusedMessages } from '../../operators/sql/retry-messages.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { table } from '../../text/table.ts'
import { confirmed, type DecisionOptions, reportDone, reportUndone, withDecision } from '../decision.ts'
import { countOf } from '../options/count-of.ts'
import { inLines, note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'

const HEADINGS = ['MESSAGE', 'REFUSED', 'REASON', 'TOPIC', 'KEY', 'EVENT', 'BYTES']

const list = new Command('list')
  .description('list messages that Kafka has refused, the oldest first')
  .option('--limit <count>', 'at most so many', countOf, 100)
  .option('--json', 'print each as a line of JSON, times in milliseconds since 1970')
  .action(async ({ limit, json }: { limit: number; json?: true }) => {
    const config = readConfig(process.env)
    const found = await withDatabase(config, (db) => db.run(refusedMessages, { limit: limit + 1 }))
    const shown = found.slice(0, limit)
    if (json) for (const each of shown) print(JSON.stringify({ ...each, position: `${each.position}` }))
    else print(shown.length > 0 ? listText(inLines(shown)) : 'none')
    if (found.length > limit) note(`there are more: --limit ${limit} shows the first`)
  })

function listText(messages: readonly RefusedMessage[]): string {
  const rows = messages.map(({ position, refusedAt, reason, topic, key, eventId, bytes }) => [
    ...[String(position), formatTime(refusedAt), reason, topic, key, eventId, String(bytes)],
  ])
  return table([HEADINGS, ...rows], ['>', '', '', '', '', '', '>']).join('\n')
}

const retry = withDecision(
  new Command('retry')
    .description(
      'have the relay publish messages once more that Kafka has refused, under their own event ids',
    )
    .argument('[messages...]', 'as list shows them', positions)
    .option('--all', 'all that there are'),
).action(async (wanted: bigint[], options: DecisionOptions & { all?: true }) => {
  if (wanted.length > 0 === (options.all ?? false)) {
    throw new ExpectedFailure('which ones? give their numbers, or --all')
  }
  await withDatabase(readConfig(process.env), async (db) => {
    const due = options.all ? await allRefused(db) : wanted
    const there = new Set((await db.run(refusedAmong, { positions: wanted })).map(({ position }) => position))
    const missing = wanted.filter((position) => !there.has(position))
    if (missing.length > 0)
      throw new ExpectedFailure(`there is no message ${missing.join(', ')}: see payoutd outbox list`)
    if (due.length === 0) return reportUndone({ text: 'Kafka has refused no message', json: {} }, options)
    const would = { text: `${due.length} would be published once more`, json: { messages: due.map(String) } }
    if (!(await confirmed(would, options))) return
    const { by, reason } = options
    const done = await retryMessages(db, { positions: due, by, reason })
    const which = done.length > MOST_TOLD ? `${done.length} messages` : done.join(', ')
    const text = `the relay publishes them once more: ${which}; payoutd outbox list shows again what Kafka refuses`
    reportDone({ text, json: { messages: done.map(String) } }, options)
  })
})

/** Messages that are named one by one. */
const MOST_TOLD = 100

export const outboxCommand = new Command('outbox')
  .description('look at messages that Kafka has refused, or have them published once more')
  .addCommand(list)
  .addCommand(retry)

function positions(text: string, before: bigint[] | undefined): bigint[] {
  if (!/^\d{1,18}$/.test(text)) throw new InvalidArgumentError('It must be a number, as list shows it.')
  return [...(before ?? []), BigInt(text)]
}
