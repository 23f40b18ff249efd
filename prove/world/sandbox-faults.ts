import type { World } from './world.ts'

const faultsOf = ({ sandbox }: World): string => `${sandbox.url}/_sandbox/faults`

/** Adds faults to the sandbox (devkit/sandbox/README.md, "Faults"); an empty list ends all of them. */
export async function setFaults(world: World, wanted: readonly object[]): Promise<void> {
  if (wanted.length === 0) await fetch(faultsOf(world), { method: 'DELETE' })
  for (const fault of wanted) {
    const body = JSON.stringify(fault)
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(faultsOf(world), { method: 'POST', headers, body })
    if (!answer.ok) throw new Error(`the sandbox refuses the fault: ${await answer.text()}`)
  }
}

/** Queries find no payout; `new`: none that the gateway accepts from now on. */
export async function findNothing(world: World, which: { new: boolean }): Promise<void> {
  const except = which.new ? (await world.gateway.orders()).map(({ mchOrderNo }) => mchOrderNo) : []
  await setFaults(world, [{ fault: 'not-found', operation: 'queryPayout', percent: 100, except }])
}

/** How often the faults that may still strike have struck; a fault for the `next` calls ends with them. */
export async function faultsLeft(world: World): Promise<{ struck: number }[]> {
  return (await (await fetch(faultsOf(world))).json()) as { struck: number }[]
}

/** Moves the sandbox's clock forward: what falls due at the gateway in that time happens now. */
export async function drive(world: World, advanceMs: number): Promise<void> {
  await fetch(`${world.sandbox.url}/_sandbox/clock`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ advanceMs }),
  })
}
