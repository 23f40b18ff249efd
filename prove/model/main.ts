import { Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../../src/platform/clock.ts'
import { PRODUCT } from './parts.ts'
import { type Proof, proveModel } from './prove.ts'

type Options = { seeds: number; seed?: number; path?: string }

const TELL_EVERY_MS = 1_000

await new Command('prove:model')
  .description(
    'simulates payoutd against a model of the gateway, in as many orders of events as it is given seeds',
  )
  .option('--seeds <count>', 'simulations', count, 2_000)
  .option('--seed <number>', 'where they all come from; another one each time', integer)
  .option('--path <path>', 'the one simulation of that seed to run again')
  .action(prove)
  .parseAsync()

function prove({ seeds, ...again }: Options): void {
  const began = systemClock.monotonic()
  let told = began
  const onProgress = (done: number) => {
    const now = systemClock.monotonic()
    if (now < told + TELL_EVERY_MS) return
    told = now
    process.stderr.write(`\r${done} of ${seeds} simulations, ${seconds(now - began)} s`)
  }
  const proof = proveModel({ parts: PRODUCT, seeds, ...again, shrink: true, onProgress })
  process.stderr.write('\r')
  console.log(textOf(proof))
  console.log(`${seconds(systemClock.monotonic() - began)} s`)
  if (!proof.holds) process.exitCode = 1
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1)
}

function textOf(proof: Proof): string {
  if (proof.holds) return `${proof.seeds} simulations: every invariant held in each`
  const { detail, story, seeds, seed, path } = proof
  const again = `npm run prove:model -- --seed ${seed} --path ${path}`
  return [...story, '', `broken after ${seeds} simulations: ${detail}`, `run it again: ${again}`].join('\n')
}

function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.')
  return Number(text)
}

function integer(text: string): number {
  if (!/^-?\d{1,10}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}
