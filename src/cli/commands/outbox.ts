import { Command, InvalidArgumentError } from 'commander'
import { readConfig } from '../../config/config.ts'
import { formatTime } from '../../domain/times.ts'
import { allRefused, retryMessages } from '../../operators/retry-messages.ts'
import { type RefusedMessage, refusedAmong, refusedMessages } from '../../operators/sql/retry-messages.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { table } from '../../text/table.ts'
import { type DecisionResult, decideInDatabase } from '../decide.ts'
import { type DecisionOptions, withDecision } from '../decision.ts'
import { countOf } from '../options/count-of.ts'
import { inLines, note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'

const HEADINGS = ['MESSAGE', 'REFUSED', 'REASON', 'TOPIC', 'KEY', 'EVENT', 'BYTES']

const list = new Command('list')
  .description('list messages that Kafka refused, the oldest first')
  .option('--limit <count>', 'the most to show', countOf, 100)
  .option('--json', 'print one JSON object per line; times in milliseconds since 1970')
  .action(async ({ limit, json }: { limit: number; json?: true }) => {
    const config = readConfig(process.env)
    const found = await withDatabase(config, (db) => db.run(refusedMessages, { limit: limit + 1 }))
    const shown = found.slice(0, limit)
    if (json) for (const each of shown) print(JSON.stringify({ ...each, position: `${each.position}` }))
    else print(shown.length > 0 ? listText(inLines(shown)) : 'none')
    if (found.length > limit) note(`there are more; --limit ${limit} shows only the first`)
  })

function listText(messages: readonly RefusedMessage[]): string {
  const rows = messages.map(({ position, refusedAt, reason, topic, key, eventId, bytes }) => [
    ...[String(position), formatTime(refusedAt), reason, topic, key, eventId, String(bytes)],
  ])
  return table([HEADINGS, ...rows], ['>', '', '', '', '', '', '>']).join('\n')
}

const retry = withDecision(
  new Command('retry')
    .description('publish messages that Kafka refused again, with their own event ids')
    .argument('[messages...]', 'the numbers that payoutd outbox list shows', positions)
    .option('--all', 'all refused messages'),
).action(async (wanted: bigint[], options: DecisionOptions & { all?: true }) => {
  if (wanted.length > 0 === (options.all ?? false)) {
    throw new ExpectedFailure('which messages? give their numbers, or --all')
  }
  const { by, reason } = options
  await decideInDatabase(readConfig(process.env), options, {
    find: async (db) => {
      if (options.all) return allRefused(db)
      const there = new Set(
        (await db.run(refusedAmong, { positions: wanted })).map(({ position }) => position),
      )
      const missing = wanted.filter((position) => !there.has(position))
      if (missing.length === 0) return wanted
      throw new ExpectedFailure(
        `there is no refused message ${missing.join(', ')}; payoutd outbox list shows all`,
      )
    },
    preview: async (due) => ({
      ...reportOf(
        due,
        due.length > 0 ? `${due.length} would be published again` : 'Kafka has refused no message',
      ),
      shown: due,
    }),
    async execute(due, db) {
      const done = await retryMessages(db, { positions: due, by, reason })
      const which = done.length > MOST_NAMED ? `${done.length} messages` : done.join(', ')
      const text = `payoutd publishes them again: ${which}; those that Kafka refuses again appear in payoutd outbox list`
      return { ...reportOf(done, text), isDone: true }
    },
  })
})

const reportOf = (messages: readonly bigint[], text: string): DecisionResult => ({
  ...{ text, json: { messages: messages.map(String) } },
  ...{ isDone: messages.length > 0, isSoAlready: messages.length === 0 },
})

/** So many messages are named one by one. */
const MOST_NAMED = 100

export const outboxCommand = new Command('outbox').addCommand(list).addCommand(retry)

function positions(text: string, before: bigint[] | undefined): bigint[] {
  if (!/^\d{1,18}$/.test(text)) throw new InvalidArgumentError('It must be a number, as list shows it.')
  return [...(before ?? []), BigInt(text)]
}
