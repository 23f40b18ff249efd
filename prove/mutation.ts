import { Stryker } from '@stryker-mutator/core'
import { Command, Option } from 'commander'
import { figuresOf, type MutationFigures, together } from './mutation-figures.ts'
import { keepMutation, writeProof } from './proof.ts'

/** What must not be wrong: the files that decide it, and those of their tests that need no servers. */
const GROUPS: Readonly<Record<string, { folder: string; mutate: string; tests: readonly string[] }>> = {
  'state-machine': {
    folder: 'src/payout',
    mutate: '{states,transition,settle,record-apply,record-query,when-due,cancel,resolve}.ts',
    tests: ['states', 'decisions', 'resolve'],
  },
  signing: {
    folder: 'src/gateway',
    mutate: '{sign,sign-variants,java-order}.ts',
    tests: ['sign', 'sign-variants'],
  },
  'outcome-table': {
    folder: 'src/gateway',
    mutate: '{hear,apply-answer,query-answer}.ts',
    tests: ['apply-answer', 'query-answer', 'balance-answer', 'exchange'],
  },
  'funds-gate': { folder: 'src/dispatch', mutate: 'pace.ts', tests: ['pace'] },
  'csv-parsing': {
    folder: 'src/batches',
    mutate: '{row,rupees,records,format}.ts',
    tests: ['row', 'rupees', 'records', 'format'],
  },
}

/** Per cent of a group's mutants that its tests must find out. */
const ENOUGH = 95

async function run({ only = Object.keys(GROUPS) }: { only?: string[] }): Promise<void> {
  const totals: MutationFigures[] = []
  for (const [group, { folder, mutate, tests }] of Object.entries(GROUPS)) {
    if (!only.includes(group)) continue
    console.error(group)
    const began = Date.now()
    const mutants = await new Stryker({
      configFile: 'prove/stryker.config.json',
      mutate: [`${folder}/${mutate}`],
      tap: { testFiles: tests.map((test) => `${folder}/${test}.test.ts`) },
    }).runMutationTest()
    const seconds = Math.round((Date.now() - began) / 1000)
    const files = figuresOf(mutants)
    keepMutation({ group, ranAt: new Date().toISOString(), seconds, node: process.version, files })
    const total = together(group, files)
    console.table([...files, total])
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
