import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { Command, Option } from 'commander'
import { startStack } from '../devkit/local/servers/stack.ts'
import { createLogger } from '../src/platform/log.ts'
import { type Bench, isRight, type Row } from './matrix.ts'
import { keepResult, writeProof } from './proof.ts'
import { SECTIONS } from './sections.ts'

const root = path.resolve(import.meta.dirname, '..')

type ProveOptions = { quick: boolean; only?: string[]; soakMinutes: number }

async function run({ quick, only, soakMinutes }: ProveOptions): Promise<void> {
  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => abort.abort(new Error('interrupted')))
  }
  const log = createLogger({ name: 'prove', level: 'fatal', destination: 2 })
  const dir = path.join(root, '.payoutd', 'prove')
  const worlds = path.join(dir, 'worlds')
  rmSync(worlds, { recursive: true, force: true })
  mkdirSync(worlds, { recursive: true })
  console.error('starting PostgreSQL, Kafka and the schema registry')
  const stack = await startStack({ dir, fresh: true, sandbox: false, ports: 'any', log })
  const rows: Row[] = []
  try {
    for (const [name, section] of Object.entries(SECTIONS)) {
      if (only && !only.includes(name)) continue
      const began = Date.now()
      const tell = (what: string) =>
        console.error(`  ${((Date.now() - began) / 1000).toFixed(0).padStart(5)} s  ${what}`)
      console.error(name)
      const bench: Bench = { stack, dir: worlds, log, quick, soakMinutes, signal: abort.signal, tell }
      const found: Row[] = []
      for await (const row of section(bench)) {
        found.push(row)
        tell(inOneLine(row))
        if (!row.caughtBy)
          for (const each of row.discrepancies.slice(0, 20)) console.error(`         ${each}`)
      }
      rows.push(...found)
      // A section that cannot run on this machine keeps its result from another.
      if (!quick && found.length > 0) keepResult(name, found, Math.round((Date.now() - began) / 1000))
    }
  } finally {
    await stack.stop()
  }
  if (!quick) writeProof()
  process.exitCode = rows.length > 0 && rows.every(isRight) ? 0 : 1
}

const inOneLine = ({ name, runs, faults, payouts, paidTwice, lost, lied, other, note }: Row): string =>
  `${name}: ${runs} runs, ${faults} faults, ${payouts} payouts: ${paidTwice} paid twice, ${lost} lost, ${lied} lied, ` +
  `${other} other${note === '' ? '' : `; ${note}`}`

await new Command('prove')
  .description(
    'break everything that can break, and hold what became of every payout against the gateway’s own books',
  )
  .option('--quick', 'the form that CI runs: fewer runs of the same kinds, no file is written', false)
  .addOption(new Option('--only <sections...>', 'only these').choices(Object.keys(SECTIONS)))
  .option('--soak-minutes <minutes>', 'how long the soak takes', Number, 60)
  .action(run)
  .parseAsync()
  // Node 24.21.0 was once seen to spin for ever (in Environment::CleanupHandles) at the end of a process that drains by itself.
  .then(() => process.exit())
  .catch((error: Error) => {
    console.error(`prove: ${error.message}`)
    // Otherwise, what an aborted section left open would keep the process alive.
    process.exit(2)
  })
