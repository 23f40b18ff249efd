import { Command, InvalidArgumentError } from 'commander'
import { type Config, readConfig } from '../../config/config.ts'
import { topicNames } from '../../messages/topics.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { createPublisher } from '../../platform/kafka/producer.ts'
import { readTopic } from '../../platform/kafka/read-topic.ts'
import { createLogger, type Logger } from '../../platform/log.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import type { Original } from '../../stages/intake/dead-letter.ts'
import {
  type DeadLetter,
  openLetter,
  positionOf,
  readDeadLetters,
  replay,
} from '../../stages/intake/dead-letters.ts'
import { type Expected, previewReplay } from '../../stages/intake/preview-replay.ts'
import {
  type Content,
  contentOf,
  expectedText,
  lettersText,
  letterText,
  replayedText,
  SEALED,
  traceText,
} from '../../views/dlq-text.ts'
import {
  type ActReport,
  confirmed,
  type DecisionOptions,
  reportDone,
  reportUndone,
  withDecision,
} from '../decision.ts'
import { countOf } from '../options/count-of.ts'
import { inLines, note, print } from '../print.ts'
import { withDatabase } from '../with-database.ts'
import { withLedger } from '../with-ledger.ts'

const POSITION = 'partition:offset in the topic of dead letters, as payoutd dlq list shows it'

const list = new Command('list')
  .description('list dead letters: commands that payoutd could neither accept nor reject')
  .option('--limit <count>', 'the most to show', countOf, 100)
  .option('--json', 'print one JSON object per line; times in milliseconds since 1970')
  .action(async ({ limit, json }: { limit: number; json?: true }) => {
    const config = readConfig(process.env)
    const letters = await withDatabase(config, (db) => lettersOf(config, db, logOf(config)))
    const shown = letters.slice(0, limit)
    if (json) for (const letter of shown) print(JSON.stringify(flat(letter)))
    else print(shown.length > 0 ? lettersText(inLines(shown)) : 'none')
    if (letters.length > limit) {
      note(`there are ${letters.length}; --limit ${limit} shows only the first`)
    }
  })

const show = new Command('show')
  .description('show what a dead letter contains, with bank details masked')
  .argument('<position>', POSITION, position)
  .option('--json', 'print JSON; times in milliseconds since 1970')
  .action(async (wanted: string, { json }: { json?: true }) => {
    const config = readConfig(process.env)
    await withDatabase(config, async (db) => {
      const [letter] = chosen(await lettersOf(config, db, logOf(config)), [wanted]) as [DeadLetter]
      const content = await contentIn(letter, config)
      print(
        json ? JSON.stringify({ ...flat(letter), content }, null, 2) : letterText(inLines(letter), content),
      )
    })
  })

type ReplayOptions = DecisionOptions & { all?: true; again?: true }

const replayCommand = withDecision(
  new Command('replay')
    .description('publish the commands in dead letters again; payoutd handles them like new commands')
    .argument('[positions...]', POSITION, positions)
    .option('--all', 'all that nobody has replayed')
    .option('--again', 'include those that were replayed before'),
)
  .addHelpText(
    'after',
    '\nThe exit code is 1 if payoutd cannot publish one of them, because no key opens it or it does not contain its record.',
  )
  .action(async (wanted: string[], options: ReplayOptions) => {
    if (wanted.length > 0 === (options.all ?? false)) {
      throw new ExpectedFailure('which dead letters? give their positions, or --all')
    }
    const config = readConfig(process.env)
    const log = logOf(config)
    await withDatabase(config, async (db) => {
      const letters = await lettersOf(config, db, log)
      const asked = options.all ? letters : chosen(letters, wanted)
      const due = asked.filter(({ replayed }) => options.again || !replayed)
      for (const letter of asked.filter(({ replayed }) => replayed && !options.again)) {
        note(
          `${positionOf(letter)} was replayed ${replayedText(inLines(letter))}; use --again to replay it again`,
        )
      }
      const opened = due.flatMap((letter) => {
        const inside = openLetter(letter, config.sealing)
        if (inside?.kind === 'original') return [{ letter, original: inside }]
        const why = inside ? traceText(inLines(inside), inLines(letter)) : SEALED
        note(`${positionOf(letter)} cannot be replayed: ${why}`)
        return []
      })
      if (opened.length < due.length) process.exitCode = 1
      if (opened.length === 0) return reportUndone({ text: 'there is nothing to replay', json: {} }, options)
      const would = options.yes && !options.dryRun ? UNASKED : await expected(opened, config)
      if (!(await confirmed(would, options))) return
      await publishAgain(opened, options, db, config, log)
      const positions = opened.map(({ letter }) => positionOf(letter))
      const text = `published again: ${positions.join(', ')}\npayoutd now handles them like new commands; those that fail again appear in payoutd dlq list`
      reportDone({ text, json: { positions } }, options)
    })
  })

export const dlqCommand = new Command('dlq').addCommand(list).addCommand(show).addCommand(replayCommand)

type OpenedLetter = { letter: DeadLetter; original: Original }

const logOf = ({ logLevel }: Config) => createLogger({ name: 'payoutd', level: logLevel, destination: 2 })

export const lettersOf = ({ kafka, topicPrefix }: Config, db: Database, log: Logger): Promise<DeadLetter[]> =>
  readDeadLetters(topicNames(topicPrefix), {
    db,
    readTopic: (topic, onRecord) => readTopic({ connection: kafka, topic, onRecord, log }),
  })

function chosen(letters: readonly DeadLetter[], wanted: readonly string[]): DeadLetter[] {
  const missing = wanted.filter((name) => !letters.some((letter) => positionOf(letter) === name))
  if (missing.length > 0) {
    throw new ExpectedFailure(`there is no dead letter at ${missing.join(', ')}; payoutd dlq list shows all`)
  }
  return letters.filter((letter) => wanted.includes(positionOf(letter)))
}

async function contentIn(letter: DeadLetter, config: Config): Promise<Content> {
  const inside = openLetter(letter, config.sealing)
  if (!inside) return { kind: 'sealed' }
  if (inside.kind === 'trace') return inside
  const { value } = inside
  return withLedger(config, async (_, codec) => contentOf(value, await codec.decode(value)))
}

/** `--yes` asks nothing, so there is no preview to show. */
const UNASKED: ActReport = { text: '', json: {} }

/** What a replay of each would do now. */
async function expected(opened: readonly OpenedLetter[], config: Config): Promise<ActReport> {
  const found = await withLedger(config, (ledger, codec) =>
    previewReplay(
      opened.map(({ original }) => original.value),
      {
        ledger,
        terms: config.merchants,
        keys: { sealing: config.sealing, fingerprint: config.fingerprintKey },
        decode: (value) => codec.decode(value),
      },
    ),
  )
  const each = opened.map(({ letter }, i) => ({ letter, would: found[i] as Expected }))
  const lines = each.map(({ letter, would }) => `${positionOf(letter)}  ${expectedText(inLines(would))}`)
  return {
    text: ['with the settings of this command:', ...lines, `${opened.length} would be published again`].join(
      '\n',
    ),
    json: { letters: each.map(({ letter, would }) => ({ ...flat(letter), would })) },
  }
}

async function publishAgain(
  opened: readonly OpenedLetter[],
  { by, reason }: { by: string; reason: string },
  db: Database,
  { kafka, topicPrefix }: Config,
  log: Logger,
): Promise<void> {
  const publisher = createPublisher('replay', kafka, log)
  try {
    await replay(opened, { by, reason }, { db, topics: topicNames(topicPrefix), publish: publisher.publish })
  } finally {
    await publisher.close()
  }
}

/** What a program sees of a dead letter. */
const flat = (letter: DeadLetter) => ({
  position: positionOf(letter),
  at: letter.at,
  reason: letter.reason,
  origin: letter.origin,
  replayed: letter.replayed && {
    times: letter.replayed.times,
    by: letter.replayed.replayedBy,
    reason: letter.replayed.reason,
    at: letter.replayed.at,
  },
})

function position(text: string): string {
  if (!/^\d{1,6}:\d{1,19}$/.test(text))
    throw new InvalidArgumentError('It must be partition:offset, as in 2:17.')
  return text
}

function positions(text: string, before: string[] | undefined): string[] {
  return [...(before ?? []), position(text)]
}
