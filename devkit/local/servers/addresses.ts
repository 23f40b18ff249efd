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
