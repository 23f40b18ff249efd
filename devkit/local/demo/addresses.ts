import path from 'node:path'
import { callbackPath } from '../../../src/stages/outcomes/callback-endpoint.ts'
import type { Installation } from './installation.ts'
import { internalUrl, publicUrl } from './payoutd-process.ts'

/** Every address of an installation, for a person; the passwords stay in its settings file. */
export function addressBlock({ stack, settings, settingsFile, payoutd }: Installation): string {
  const merchantId = settings.MERCHANT_ID ?? ''
  const lines = {
    callbacks: publicUrl(settings) + callbackPath('payout', merchantId),
    'internal API': `${internalUrl(settings)}   (/healthz, /readyz, /metrics)`,
    Postgres: withoutPassword(stack.databaseUrl),
    Kafka: stack.kafkaBrokers.join(','),
    registry: stack.schemaRegistryUrl,
    gateway: gatewayLine(settings),
    settings: `${path.relative('', settingsFile)}   (passwords and keys, for --env-file)`,
    log: path.relative('', payoutd.logFile),
  }
  return Object.entries(lines)
    .map(([name, value]) => `  ${name.padEnd(14)}${value}`)
    .join('\n')
}

function withoutPassword(databaseUrl: string): string {
  const url = new URL(databaseUrl)
  url.password = ''
  return url.href
}

function gatewayLine({
  GATEWAY_BASE_URL,
  GATEWAY_MCH_ID,
  GATEWAY_DIALECT,
}: Installation['settings']): string {
  return GATEWAY_DIALECT === 'sandbox'
    ? `${GATEWAY_BASE_URL}   (sandbox; its ledger: /_sandbox/books?mchId=${GATEWAY_MCH_ID})`
    : `${GATEWAY_BASE_URL}`
}
