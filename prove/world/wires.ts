import type { Bench } from '../matrix.ts'
import { Wire } from './wire.ts'
import { World, type WorldOptions } from './world.ts'

/** The wires between a payoutd and its servers, except Kafka, whose brokers advertise their own addresses. */
export type Wires = { postgres: Wire; registry: Wire; gateway: Wire }

/** A world whose processes reach Postgres, the registry and the gateway through wires. `close` ends all of it. */
export async function openThroughWires(
  { stack, dir, log }: Bench,
  options: Omit<WorldOptions, 'stack' | 'dir' | 'log'>,
): Promise<{ world: World; wires: Wires; close: () => Promise<void> }> {
  const world = await World.open({ stack, dir, log, ...options })
  const { settings } = world
  const reroute = async (name: string): Promise<Wire> => {
    const url = new URL(settings[name] ?? '')
    const wire = await Wire.to(url.host)
    url.host = `127.0.0.1:${wire.port}`
    settings[name] = url.href.replace(/\/$/, '')
    return wire
  }
  const wires = {
    postgres: await reroute('DATABASE_URL'),
    registry: await reroute('SCHEMA_REGISTRY_URL'),
    gateway: await reroute('GATEWAY_BASE_URL'),
  }
  world.reachGatewayAt(settings.GATEWAY_BASE_URL as string)
  const close = async () => {
    await world.close()
    for (const wire of Object.values(wires)) await wire.close()
  }
  return { world, wires, close }
}
