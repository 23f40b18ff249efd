import { MERCHANT_VARIABLES } from './merchant-variables.ts'

/** One variable, as docs/reference/settings.md and .env.example show it (`npm run reference` writes both). */
export type Setting = {
  name: string
  /** The value while it is not set. Null: none. */
  default: string | null
  /** payoutd does not start without it. */
  required?: true
  /** An example value, if no default shows one. */
  example?: string
  what: string
}

export type SettingsGroup = { title: string; settings: Setting[] }

export const SETTINGS: SettingsGroup[] = [
  {
    title: 'Database',
    settings: [
      {
        name: 'DATABASE_URL',
        default: null,
        required: true,
        example: 'postgres://user:password@host/payoutd',
        what: 'The address of the PostgreSQL 18 database.',
      },
      { name: 'DATABASE_CONNECTIONS', default: '8', what: 'Connections that one process opens.' },
      {
        name: 'HISTORY_MONTHS',
        default: null,
        example: '24',
        what: 'Full months of history to keep. Without it, payoutd keeps all history. It always keeps the payouts themselves.',
      },
    ],
  },
  {
    title: 'Kafka',
    settings: [
      {
        name: 'KAFKA_BROKERS',
        default: null,
        required: true,
        example: 'kafka-1:9092,kafka-2:9092',
        what: 'The brokers, as `host:port` with commas between several.',
      },
      { name: 'KAFKA_SSL', default: 'false', what: 'Whether to connect by TLS.' },
      {
        name: 'KAFKA_SASL_MECHANISM',
        default: null,
        example: 'scram-sha-512',
        what: '`plain`, `scram-sha-256` or `scram-sha-512`. Without it, payoutd does not log in.',
      },
      { name: 'KAFKA_USERNAME', default: null, example: 'payoutd', what: 'The user for SASL.' },
      { name: 'KAFKA_PASSWORD', default: null, what: 'The password for SASL.' },
      {
        name: 'KAFKA_GROUP',
        default: 'payoutd',
        what: 'The consumer group of intake; payoutd puts `TOPIC_PREFIX` before this name.',
      },
      {
        name: 'TOPIC_PREFIX',
        default: null,
        example: 'test.',
        what: 'A prefix of every topic name, so that several installations can share one Kafka.',
      },
      {
        name: 'TOPIC_PARTITIONS',
        default: '6',
        what: 'Partitions of each topic that `payoutd migrate` creates.',
      },
      {
        name: 'TOPIC_REPLICATION',
        default: '1',
        what: 'Replicas of each topic that `payoutd migrate` creates. Use 3 in production.',
      },
    ],
  },
  {
    title: 'Schema registry',
    settings: [
      {
        name: 'SCHEMA_REGISTRY_URL',
        default: null,
        required: true,
        example: 'http://registry:8081',
        what: 'The address of a registry that speaks the Confluent API.',
      },
      {
        name: 'SCHEMA_REGISTRY_USERNAME',
        default: null,
        example: 'payoutd',
        what: 'The user of the registry. Without it, payoutd does not log in.',
      },
      { name: 'SCHEMA_REGISTRY_PASSWORD', default: null, what: 'The password of that user.' },
    ],
  },
  {
    title: 'Addresses of a process',
    settings: [
      { name: 'PUBLIC_HOST', default: '127.0.0.1', what: 'Where the callback endpoint listens.' },
      { name: 'PUBLIC_PORT', default: '8080', what: 'Its port.' },
      {
        name: 'PUBLIC_URL',
        default: null,
        example: 'https://payouts.example',
        what: 'The URL by which the gateway reaches the callback endpoint. Without it, the address where the endpoint listens.',
      },
      {
        name: 'INTERNAL_HOST',
        default: '127.0.0.1',
        what: 'Where `/healthz`, `/readyz`, `/metrics` and `/v1/payins` listen.',
      },
      { name: 'INTERNAL_PORT', default: '9464', what: 'Their port.' },
    ],
  },
  {
    title: 'Keys',
    settings: [
      {
        name: 'ENCRYPTION_KEYS',
        default: null,
        required: true,
        what: 'Keys that encrypt bank details: `id:key` pairs separated by commas, each key 32 bytes in base64 (`echo 1:$(openssl rand -base64 32)`). payoutd encrypts with the key that has the highest id, and decrypts with all of them.',
      },
      {
        name: 'FINGERPRINT_KEY',
        default: null,
        required: true,
        what: '32 bytes in base64 (`openssl rand -base64 32`). payoutd uses it to compare bank details. Never change it.',
      },
    ],
  },
  {
    title: 'Work of a process',
    settings: [
      { name: 'IN_FLIGHT', default: '256', what: 'Apply calls at once in one process.' },
      {
        name: 'LOG_LEVEL',
        default: 'info',
        what: '`fatal`, `error`, `warn`, `info`, `debug` or `silent`.',
      },
    ],
  },
  {
    title: 'Several merchants',
    settings: [
      {
        name: 'MERCHANTS_FILE',
        default: null,
        example: '/etc/payoutd/merchants.json',
        what: 'The path of a JSON file that lists the merchants. payoutd then ignores the variables of one merchant.',
      },
    ],
  },
]

/** The one merchant of an installation without a merchants file. */
export const MERCHANT_SETTINGS: Setting[] = [
  {
    name: 'MERCHANT_ID',
    default: 'default',
    what: 'The merchant’s name in commands and topics. Never change it.',
  },
  {
    name: 'GATEWAY_BASE_URL',
    default: null,
    required: true,
    example: 'https://gateway.example',
    what: 'The address of the gateway.',
  },
  {
    name: 'GATEWAY_MCH_ID',
    default: null,
    required: true,
    example: '1000100',
    what: 'The merchant number at the gateway.',
  },
  { name: 'GATEWAY_KEY', default: null, required: true, what: 'The key that signs requests and callbacks.' },
  {
    name: 'GATEWAY_FORMER_KEYS',
    default: null,
    what: 'Keys that this key replaced, separated by spaces (in a file, a list). payoutd still accepts callbacks that they sign.',
  },
  {
    name: 'GATEWAY_DIALECT',
    default: 'default',
    what: 'The name of a dialect, or the path of a JSON file with one.',
  },
  {
    name: 'GATEWAY_CA_FILE',
    default: null,
    example: '/etc/payoutd/ca.pem',
    what: 'A PEM file with the certificate authorities that payoutd trusts for the gateway. Without it, those of Node.js.',
  },
  {
    name: 'GATEWAY_CERT_FILE',
    default: null,
    example: '/etc/payoutd/client.pem',
    what: 'The client certificate that payoutd presents to the gateway.',
  },
  {
    name: 'GATEWAY_CERT_KEY_FILE',
    default: null,
    example: '/etc/payoutd/client-key.pem',
    what: 'The key of that certificate.',
  },
  {
    name: 'MIN_AMOUNT_RUPEES',
    default: null,
    example: '100',
    what: 'The smallest payout, in whole rupees.',
  },
  {
    name: 'MAX_AMOUNT_RUPEES',
    default: null,
    example: '500000',
    what: 'The largest payout, in whole rupees.',
  },
  { name: 'MAX_IN_FLIGHT', default: '64', what: 'Apply calls at once, over all processes.' },
  {
    name: 'RATE_PER_SECOND',
    default: null,
    example: '20',
    what: 'Apply calls a second, over all processes. Without it, no limit.',
  },
  {
    name: 'FEE_ESTIMATE_PAISE',
    default: '0',
    what: 'The fee that payoutd expects for a payout until the gateway reports the real one, in paise.',
  },
  {
    name: 'HOLD_DUPLICATES',
    default: 'true',
    what: 'Whether payoutd holds a payout that looks like an earlier payment until a person releases it.',
  },
  {
    name: 'PAY_PERIOD',
    default: 'month',
    what: '`day`, `week` (from Monday) or `month`, in India. Within it, the same amount to the same beneficiary in another batch, or without a batch, is a duplicate.',
  },
  {
    name: 'HOLD_CHANGED_BENEFICIARIES',
    default: 'true',
    what: 'Whether payoutd holds a payout to a `beneficiaryId` if its bank details differ from those last paid to, or from those of a payment that may still be paid.',
  },
  {
    name: 'DEADLINE_HOURS',
    default: '72',
    what: 'The hours until the deadline of a payout that names none. payoutd also queries an unpaid payin for this long.',
  },
]

/** The field of a merchants file that corresponds to a variable. */
export const fieldOf = (name: string): string => {
  const field = Object.keys(MERCHANT_VARIABLES).find((each) => MERCHANT_VARIABLES[each] === name)
  if (field === undefined) throw new Error(`${name} is no field of a merchants file`)
  return field
}
