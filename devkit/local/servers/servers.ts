import type { Addresses } from './addresses.ts'
import type { Tuning } from './java.ts'
import { kafka } from './kafka.ts'
import type { Layout } from './layout.ts'
import type { ServerParts } from './parts.ts'
import { type PostgresOptions, postgres, postgresUrl } from './postgres.ts'
import type { Host } from './processes/process.ts'
import { type RegistryStorage, registry, registryUrl } from './registry.ts'
import { sandbox } from './sandbox.ts'
import type { StackSecrets } from './secrets.ts'

/** Addresses of servers that somebody else runs. */
export type Given = {
  [Address in 'databaseUrl' | 'kafkaBrokers' | 'schemaRegistryUrl' | 'gatewayBaseUrl']?:
    | Addresses[Address]
    | undefined
}

/** What the servers of one stack have in common. */
export interface Setting {
  layout: Layout
  host: Host
  secrets: StackSecrets
  tuning: Tuning
  given: Given
  withSandbox: boolean
}

const MCH_ID = '1000100'

/**
 * Starts the servers that are not given, all at once; only the registry waits for the Postgres that keeps its
 * schemas.
 */
export async function startServers(parts: ServerParts, setting: Setting): Promise<Addresses> {
  const store = startPostgres(parts, setting)
  const started = [
    store,
    startKafka(parts, setting),
    startRegistry(parts, setting, store),
    startSandbox(parts, setting),
  ] as const
  // Waits for all even if one fails: a server that is still starting could not be stopped.
  await Promise.allSettled(started)
  const [{ databaseUrl }, kafkaBrokers, schemaRegistryUrl, gateway] = await Promise.all(started)
  return { databaseUrl, kafkaBrokers, schemaRegistryUrl, ...gateway }
}

type Store = { databaseUrl: string; registryStorage: RegistryStorage }

async function startPostgres(
  parts: ServerParts,
  { layout, host, secrets, tuning, given }: Setting,
): Promise<Store> {
  // The owner of a given server does not expect a second database in it.
  if (given.databaseUrl) return { databaseUrl: given.databaseUrl, registryStorage: 'file' }
  const at = (port: number): PostgresOptions => {
    return { layout, port, password: secrets.postgresPassword, databases: ['payoutd', 'registry'], tuning }
  }
  const chosen = await parts.start('postgres', ['postgres'], (ports) => postgres(at(ports.postgres), host))
  return {
    databaseUrl: postgresUrl(at(chosen.postgres), 'payoutd'),
    registryStorage: { port: chosen.postgres, database: 'registry', password: secrets.postgresPassword },
  }
}

async function startKafka(parts: ServerParts, { layout, host, tuning, given }: Setting): Promise<string[]> {
  if (given.kafkaBrokers) return given.kafkaBrokers
  const chosen = await parts.start('kafka', ['kafka', 'kafkaController'], (ports) =>
    kafka({ layout, port: ports.kafka, controllerPort: ports.kafkaController, tuning }, host),
  )
  return [`127.0.0.1:${chosen.kafka}`]
}

async function startRegistry(parts: ServerParts, setting: Setting, store: Promise<Store>): Promise<string> {
  const { layout, host, tuning, given } = setting
  if (given.schemaRegistryUrl) return given.schemaRegistryUrl
  const { registryStorage: storage } = await store
  const chosen = await parts.start('registry', ['registry'], (ports) =>
    registry({ layout, port: ports.registry, storage, tuning }, host),
  )
  return registryUrl(chosen.registry)
}

type Gateway = Pick<Addresses, 'gatewayBaseUrl' | 'gatewayMchId' | 'gatewayKey'>

async function startSandbox(parts: ServerParts, setting: Setting): Promise<Gateway> {
  const { layout, host, secrets, given, withSandbox } = setting
  if (given.gatewayBaseUrl || !withSandbox) {
    return { gatewayBaseUrl: given.gatewayBaseUrl, gatewayMchId: undefined, gatewayKey: undefined }
  }
  const merchant = { mchId: MCH_ID, key: secrets.gatewayKey }
  const chosen = await parts.start('sandbox', ['sandbox'], (ports) =>
    sandbox({ layout, port: ports.sandbox, merchant }, host),
  )
  return {
    gatewayBaseUrl: `http://127.0.0.1:${chosen.sandbox}`,
    gatewayMchId: merchant.mchId,
    gatewayKey: merchant.key,
  }
}
