import type { Section } from './matrix.ts'
import { brokers } from './sections/brokers.ts'
import { commands } from './sections/commands.ts'
import { crashChains } from './sections/crash-chains.ts'
import { crashPoints } from './sections/crash-points.ts'
import { dependencies } from './sections/dependencies.ts'
import { failover } from './sections/failover.ts'
import { fullDisk } from './sections/full-disk.ts'
import { hostileOrder } from './sections/hostile-order.ts'
import { kafkaEdges } from './sections/kafka-edges.ts'
import { movedClock } from './sections/moved-clock.ts'
import { replicas } from './sections/replicas.ts'
import { restored } from './sections/restored.ts'
import { safeguards } from './sections/safeguards.ts'
import { soak } from './sections/soak.ts'

/** The part of the matrix that CI runs: sections with a quick form, on shared servers. */
export const QUICK: Readonly<Record<string, Section>> = {
  'crash-points': crashPoints,
  dependencies,
  'hostile-order': hostileOrder,
  safeguards,
}

/** The whole matrix, in running order. */
export const SECTIONS: Readonly<Record<string, Section>> = {
  ...QUICK,
  brokers,
  'crash-chains': crashChains,
  commands,
  failover,
  'full-disk': fullDisk,
  'kafka-edges': kafkaEdges,
  'moved-clock': movedClock,
  replicas,
  restored,
  soak,
}
