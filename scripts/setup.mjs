/**
 * Makes a fresh clone ready: packages, Kafka's jars and the schema registry; with the argument `packages`
 * those alone, which is all that programs need that start no server of others. Plain JavaScript, because it
 * runs before anything is installed, on whatever Node the machine has. Says nothing when nothing is missing.
 */
import { requireNode, requireProgram } from './setup/requirements.mjs'

requireNode()

const { packages } = await import('./setup/packages.mjs')
const { kafka, registry } = await import('./setup/servers.mjs')
const steps = process.argv[2] === 'packages' ? [packages] : [packages, kafka, registry]
const missing = () => steps.filter((step) => !step.done())

if (missing().length > 0) {
  const { withLock } = await import('./setup/lock.mjs')
  requireProgram(missing().flatMap((step) => step.needs))
  await withLock(async (children) => {
    for (const step of missing()) await step.run(children)
  })
}
