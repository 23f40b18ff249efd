import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../../devkit/local/example/random.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import type { Crash } from '../crash.ts'
import type { Proc } from '../world/proc.ts'
import { setFaults } from '../world/sandbox-faults.ts'
import { holds } from '../world/wire.ts'
import type { Wires } from '../world/wires.ts'
import type { World } from '../world/world.ts'

/** Where faults happen. `steady` lives from the beginning to the end, `mortal` dies repeatedly. */
export type Soaked = {
  world: World
  wires: Wires
  procs: { steady: Proc; mortal: Proc }
  /** Faults from the beginning to the end: one merchant's gateway misbehaves all the time. */
  standing: readonly object[]
  /** Starts a replacement for the mortal one. */
  revive: (crash?: Crash) => Promise<void>
  random: Random
}

type SoakFault = (soaked: Soaked) => Promise<void>

/** Longer than a lease lasts in these worlds, or shorter. */
const freeze =
  (which: 'steady' | 'mortal'): SoakFault =>
  async ({ procs, random }) => {
    const proc = procs[which]
    proc.signal('SIGSTOP')
    await delay(500 + random.below(11_500))
    proc.signal('SIGCONT')
  }

const onWire =
  (name: 'postgres' | 'gateway', harm: (wire: Wires['postgres'], random: Random) => void): SoakFault =>
  async ({ wires, random }) => {
    const wire = wires[name]
    harm(wire, random)
    await delay(500 + random.below(2_500))
    wire.mend()
    wire.cutAll()
  }

const atGateway =
  (faults: (seed: number) => readonly object[]): SoakFault =>
  async ({ world, standing, random }) => {
    await setFaults(world, faults(random.below(2 ** 31)))
    await delay(1_000 + random.below(4_000))
    await setFaults(world, [])
    await setFaults(world, standing)
  }

const SHARE = { percent: 25 }

const TROUBLES: readonly SoakFault[] = [
  async ({ procs, revive, random }) => {
    // "before commit claim": two words say when, the rest is the name.
    const [first = '', second = '', ...name] = random.of(procs.steady.reached().sort()).split(' ')
    const moment = `${first} ${second}` as Crash['moment']
    await procs.mortal.kill()
    await revive({ moment, name: name.join(' ') as Crash['name'], nth: 1 + random.below(20), how: 'kill' })
    await eventually('the crash', () => procs.mortal.isGone, 10_000).catch(() => undefined)
    await procs.mortal.kill()
    await revive()
  },
  async ({ procs, revive }) => {
    await procs.mortal.kill()
    await revive()
  },
  freeze('steady'),
  freeze('mortal'),
  onWire('postgres', (wire) => wire.cutAll()),
  onWire('postgres', (wire) => wire.cutAfter(holds('commit'))),
  onWire('postgres', (wire) => wire.down()),
  onWire('postgres', (wire) => wire.hang()),
  onWire('postgres', (wire, random) => wire.slow(20 + random.below(200))),
  onWire('gateway', (wire) => wire.cutAfter(holds('agentpay/apply'), 5)),
  onWire('gateway', (wire) => wire.down()),
  onWire('gateway', (wire) => wire.hang()),
  onWire('gateway', (wire, random) => wire.slow(100 + random.below(1_500))),
  atGateway((seed) => [{ fault: '500', operation: 'apply', ...SHARE, seed }]),
  atGateway((seed) => [{ fault: 'reset', operation: 'apply', ...SHARE, seed, done: false }]),
  atGateway((seed) => [{ fault: 'garbage', operation: 'queryPayout', ...SHARE, seed }]),
  atGateway((seed) => [{ fault: 'not-found', operation: 'queryPayout', ...SHARE, seed }]),
  ...['lost-callback', 'duplicate-callback', 'out-of-order-callback', 'wrongly-signed'].map((fault) =>
    atGateway((seed) => [{ fault, operation: 'payoutCallback', ...SHARE, seed }]),
  ),
]

/** Makes one fault after the other until `signal` ends it; each is over before the next. Reports each. */
export async function makeFaults(soaked: Soaked, signal: AbortSignal, onFault: () => void): Promise<void> {
  while (!signal.aborted) {
    await delay(1_000 + soaked.random.below(4_000))
    // A process that started while a dependency was missing has given up.
    if (soaked.procs.mortal.isGone) await soaked.revive()
    await soaked.random.of(TROUBLES)(soaked)
    onFault()
  }
}
