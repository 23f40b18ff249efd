import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { Command } from 'commander'
import { type ProbeOutcome, probe } from '../../gateway/probe/probe.ts'
import { systemClock } from '../../platform/clock.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { systemIds } from '../../platform/ids.ts'
import { type AccountOptions, accountOf, withAccount } from './connection.ts'
import { EXIT, type Fact, factLines, type Outcome, tell } from './outcome.ts'

/** A gateway may answer those who ask too fast with a code that nobody knows yet. */
const PACE_MS = 50

type Options = AccountOptions & { order?: string; out: string; force?: true; json?: true }

export const probeCommand = withAccount(new Command('probe'))
  .description(
    'find out the dialect of a gateway by harmless calls, balances and queries, and write it to a file; ' +
      'what such calls cannot show is named and keeps its default',
  )
  .option('--order <number>', 'a payout that the gateway has, by either of its numbers: shows more')
  .option('--out <file>', 'where to write the dialect', 'gateway-dialect.json')
  .option('--force', 'write over a file that is there')
  .option('--json', 'print what was found as JSON')
  .action(async ({ order, out, force, json, ...options }: Options) => {
    const { baseUrl, mchId, key } = accountOf(options)
    if (!force && existsSync(out))
      throw new ExpectedFailure(`${out} is there already: give another --out, or --force`)
    const found = await probe({
      ...{ baseUrl, mchId, key, knownOrder: order ?? null, clock: systemClock, ids: systemIds },
      pace: () => setTimeout(PACE_MS),
    })
    if (found.kind === 'found') writeFileSync(out, `${JSON.stringify(found.dialect, null, 2)}\n`)
    tell(outcomeOf(found, out), json === true)
  })

function outcomeOf(found: ProbeOutcome, out: string): Outcome {
  switch (found.kind) {
    case 'found': {
      const { shown, kept, warnings, retCodes } = found
      const shownFacts = shown.map(({ setting, value }): Fact => [setting, written(value)])
      const keptFacts = kept.map(({ setting, value, why }): Fact => [setting, `${written(value)}: ${why}`])
      const codes: Fact[] = [
        ['for an order that nobody has', retCodes.absentOrder.join(', ') || 'none'],
        ['for a wrong signature', retCodes.wrongSignature.join(', ') || 'none'],
      ]
      const title = [
        ...warnings.map((warning) => `warning: ${warning}`),
        ...[
          'shown',
          ...factLines(shownFacts),
          '',
          'not shown, so the default stays',
          ...factLines(keptFacts),
        ],
        ...[
          '',
          'retCodes heard, which the gateway’s people can tell the meaning of',
          ...factLines(codes),
          '',
        ],
        `written to ${out}`,
      ].join('\n')
      return { code: EXIT.yes, title, facts: [], json: { ...found, file: out } }
    }
    case 'not-reached':
      return { code: EXIT.unknown, title: `no answer from there: ${found.reason}`, facts: [], json: found }
    case 'no-balance': {
      const title =
        'in no known way of asking was the balance told: the merchant number or the key is wrong, or it is no gateway of this family'
      return { code: EXIT.no, title, facts: [['heard', found.heard.join(', ')]], json: found }
    }
    case 'contradiction': {
      const title = 'its answers are signed in no way in which it accepts requests, which no dialect can say'
      return { code: EXIT.no, title, facts: [], json: found }
    }
  }
}

const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
