import { accessSync } from 'node:fs'
import { Stryker } from '@stryker-mutator/core'
import { Command, Option } from 'commander'
import { keepMutation, writeProof } from '../proof.ts'
import { figuresOf, type MutationFigures, together } from './mutation-figures.ts'

/** The files that decide what must not go wrong, and those of their tests that need no servers. */
const GROUPS: Readonly<
  Record<string, { folder: string; mutate: readonly string[]; tests: readonly string[] }>
> = {
  'state-machine': {
    folder: 'src/domain/payout',
    mutate: [
      ...['states', 'transition', 'apply-evidence', 'record-apply-answer', 'record-query-answer'],
      ...['on-timer', 'cancel', 'resolve'],
    ],
    tests: ['states', 'decisions', 'resolve'],
  },
  signing: {
    folder: 'src/gateway/wire',
    mutate: ['sign', 'sign-variants', 'java-order'],
    tests: ['sign', 'sign-variants'],
  },
  'outcome-table': {
    folder: 'src/gateway',
    mutate: ['wire/verify-answer', 'calls/apply-answer', 'calls/query-answer'],
    tests: ['calls/apply-answer', 'calls/query-answer', 'calls/balance-answer', 'wire/exchange'],
  },
  'funds-gate': {
    folder: 'src/stages/dispatch',
    mutate: ['merchant-gate', 'covered-by-balance'],
    tests: ['merchant-gate', 'covered-by-balance'],
  },
  'csv-parsing': {
    folder: 'src',
    mutate: ['domain/rupees', 'batches/file/row', 'batches/file/csv-records', 'batches/file/format'],
    tests: ['domain/rupees', 'batches/file/row', 'batches/file/csv-records', 'batches/file/format'],
  },
}

/** Per cent of a group's mutants that its tests must detect. */
const ENOUGH = 95

async function run({ only = Object.keys(GROUPS) }: { only?: string[] }): Promise<void> {
  const totals: MutationFigures[] = []
  for (const [group, { folder, mutate, tests }] of Object.entries(GROUPS)) {
    if (!only.includes(group)) continue
    console.error(group)
    const files = mutate.map((file) => `${folder}/${file}.ts`)
    const testFiles = tests.map((test) => `${folder}/${test}.test.ts`)
    // Stryker passes over a file that is not there.
    for (const file of [...files, ...testFiles]) accessSync(file)
    const began = Date.now()
    const mutants = await new Stryker({
      configFile: 'prove/stryker.config.json',
      mutate: files,
      tap: { testFiles },
    }).runMutationTest()
    const seconds = Math.round((Date.now() - began) / 1000)
    const figures = figuresOf(mutants)
    keepMutation({ group, ranAt: new Date().toISOString(), seconds, node: process.version, files: figures })
    const total = together(group, figures)
    console.table([...figures, total])
    totals.push(total)
  }
  writeProof()
  process.exitCode = totals.every(({ score }) => score >= ENOUGH) ? 0 : 1
}

await new Command('prove:mutation')
  .description('break the code in every small way, one at a time, and count what the tests do not notice')
  .addOption(new Option('--only <groups...>', 'only these').choices(Object.keys(GROUPS)))
  .action(run)
  .parseAsync()
