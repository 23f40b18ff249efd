import { accessSync, constants, existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Command } from 'commander'
import { type AccountOptions, accountOf, withAccount } from '../../src/cli/commands/gateway/connection.ts'
import {
  EXIT,
  type Fact,
  factLines,
  type GatewayOutcome,
  printOutcome,
} from '../../src/cli/commands/gateway/outcome.ts'
import { pathOf } from '../../src/cli/options/path-of.ts'
import { ExpectedFailure } from '../../src/platform/expected-failure.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { type ProbeOutcome, probe } from './probe/probe.ts'

/** A gateway may answer fast callers with a code that is not known yet. */
const PACE_MS = 50

type ProbeOptions = AccountOptions & { order?: string; out: string; force?: true; json?: true }

export const probeCommand = withAccount(new Command('probe'))
  .description(
    'find out the dialect of a gateway with balance calls and queries, which move no money, and write it to a file; ' +
      'list the settings that such calls cannot show, which keep their defaults',
  )
  .option(
    '--order <number>',
    'the number of a payout that the gateway has (yours or the gateway’s), which shows more settings. If the gateway does not find it, the exit code is 1, but the file is still written',
  )
  .option('--out <file>', 'where to write the dialect', pathOf, 'gateway-dialect.json')
  .option('--force', 'overwrite the file if it exists')
  .option('--json', 'print the result as JSON')
  .action(async ({ order, out, force, json, ...options }: ProbeOptions) => {
    const { baseUrl, mchId, key, tls } = accountOf(options)
    if (!force && existsSync(out))
      throw new ExpectedFailure(`${out} already exists: give another --out, or --force`)
    demandFolderOf(out)
    const found = await probe({
      ...{ baseUrl, tls, mchId, key, knownOrder: order ?? null, clock: systemClock },
      pace: () => setTimeout(PACE_MS),
    })
    if (found.kind === 'found') writeFileSync(out, `${JSON.stringify(found.dialect, null, 2)}\n`)
    printOutcome(outcomeOf(found, out), json === true)
  })

/** Throws an ExpectedFailure if the file could not be written afterwards. */
function demandFolderOf(file: string): void {
  const folder = path.dirname(path.resolve(file))
  try {
    accessSync(folder, constants.W_OK)
  } catch (error) {
    throw new ExpectedFailure(
      `${file} cannot be written: there is no folder ${folder}, or you may not write to it`,
      {
        cause: error,
      },
    )
  }
}

function outcomeOf(found: ProbeOutcome, out: string): GatewayOutcome {
  switch (found.kind) {
    case 'found': {
      const { shown, kept, warnings, retCodes, knownOrder } = found
      const shownFacts = shown.map(({ setting, value }): Fact => [setting, written(value)])
      const keptFacts = kept.map(({ setting, value, why }): Fact => [setting, `${written(value)}: ${why}`])
      const codes: Fact[] = [
        ['for an order that does not exist', retCodes.absentOrder.join(', ') || 'none'],
        ['for a wrong signature', retCodes.wrongSignature.join(', ') || 'none'],
      ]
      const title = [
        ...warnings.map((warning) => `warning: ${warning}`),
        ...[
          'shown',
          ...factLines(shownFacts),
          '',
          'not shown, so these keep their defaults',
          ...factLines(keptFacts),
        ],
        ...['', 'retCodes received; ask the gateway’s support what they mean', ...factLines(codes), ''],
        `written to ${out}`,
      ]
      const code = knownOrder === 'not-found' ? EXIT.no : EXIT.yes
      return { code, title, facts: [], json: { ...found, file: out } }
    }
    case 'not-reached':
      return {
        code: EXIT.unknown,
        title: `the gateway does not answer: ${found.reason}`,
        facts: [],
        json: found,
      }
    case 'no-balance': {
      const title =
        'the gateway returned no balance in any dialect: the merchant number or the key is wrong, or it is not a gateway of this family'
      return { code: EXIT.no, title, facts: [['received', found.heard.join(', ')]], json: found }
    }
    case 'contradiction': {
      const title =
        'the gateway signs its answers in another way than the requests that it accepts, and no dialect can express that'
      return { code: EXIT.no, title, facts: [], json: found }
    }
  }
}

const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
