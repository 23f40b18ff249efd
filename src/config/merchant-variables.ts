import { type Merchant, type MerchantFault, readMerchant } from './merchants.ts'

/** The variable that holds each field of the one merchant of an installation without a merchants file. */
export const MERCHANT_VARIABLES: Record<string, string> = {
  id: 'MERCHANT_ID',
  baseUrl: 'GATEWAY_BASE_URL',
  mchId: 'GATEWAY_MCH_ID',
  key: 'GATEWAY_KEY',
  formerKeys: 'GATEWAY_FORMER_KEYS',
  dialect: 'GATEWAY_DIALECT',
  caFile: 'GATEWAY_CA_FILE',
  certFile: 'GATEWAY_CERT_FILE',
  keyFile: 'GATEWAY_CERT_KEY_FILE',
  minAmountRupees: 'MIN_AMOUNT_RUPEES',
  maxAmountRupees: 'MAX_AMOUNT_RUPEES',
  maxInFlight: 'MAX_IN_FLIGHT',
  ratePerSecond: 'RATE_PER_SECOND',
  feeEstimatePaise: 'FEE_ESTIMATE_PAISE',
  deadlineHours: 'DEADLINE_HOURS',
  payPeriod: 'PAY_PERIOD',
  holdDuplicates: 'HOLD_DUPLICATES',
  holdChangedBeneficiaries: 'HOLD_CHANGED_BENEFICIARIES',
}

/** What to set a variable without a default to. */
const NEEDED: Record<string, string> = {
  GATEWAY_BASE_URL: "the gateway's address, for example https://gateway.example",
  GATEWAY_MCH_ID: 'the merchant number at the gateway, for example 1000100',
  GATEWAY_KEY: "the merchant's secret at the gateway",
}

/** The one merchant that variables describe, by its id, or every fault at once, under the name of its variable. */
export function merchantByVariables(env: NodeJS.ProcessEnv): {
  merchants: Map<string, Merchant>
  faults: string[]
} {
  const fields = Object.entries(MERCHANT_VARIABLES).map(([field, name]) => [field, env[name]])
  const input = { id: 'default', ...Object.fromEntries(fields.filter(([, value]) => value !== undefined)) }
  const former = (env.GATEWAY_FORMER_KEYS ?? '').split(/\s/).filter((key) => key !== '')
  const formerKeys = former.map((key, i) => [`GATEWAY_FORMER_KEYS ${i}`, key] as const)
  const read = readMerchant(
    {
      ...input,
      ...(env.GATEWAY_KEY && { key: 'env:GATEWAY_KEY' }),
      formerKeys: formerKeys.map(([name]) => `env:${name}`),
    },
    { ...env, ...Object.fromEntries(formerKeys) },
  )
  return 'faults' in read
    ? { merchants: new Map(), faults: read.faults.map((fault) => line(fault, env)) }
    : { merchants: new Map([[read.merchant.merchantId, read.merchant]]), faults: [] }
}

function line({ field, what }: MerchantFault, env: NodeJS.ProcessEnv): string {
  const name = MERCHANT_VARIABLES[field] ?? field
  return env[name] === undefined
    ? `${name} is not set: give ${NEEDED[name]}, or a MERCHANTS_FILE`
    : `${name} ${what}`
}
