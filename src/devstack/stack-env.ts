import { writeWhole } from './write-whole.ts'

/** The addresses of a stack that other programs need. */
export interface Addresses {
  databaseUrl: string
  kafkaBrokers: string[]
  schemaRegistryUrl: string
  /** Undefined for a stack without a gateway. */
  gatewayBaseUrl: string | undefined
  gatewayMchId: string | undefined
  gatewayKey: string | undefined
}

/** Writes the addresses as `KEY=value` lines for a shell or `--env-file`, readable by their owner only. */
export function writeStackEnv(file: string, addresses: Addresses): void {
  const values = {
    DATABASE_URL: addresses.databaseUrl,
    KAFKA_BROKERS: addresses.kafkaBrokers.join(','),
    SCHEMA_REGISTRY_URL: addresses.schemaRegistryUrl,
    GATEWAY_BASE_URL: addresses.gatewayBaseUrl,
    GATEWAY_MCH_ID: addresses.gatewayMchId,
    GATEWAY_KEY: addresses.gatewayKey,
  }
  const lines = Object.entries(values).filter(([, value]) => value !== undefined)
  writeWhole(file, lines.map(([name, value]) => `${name}=${value}\n`).join(''), 0o600)
}
