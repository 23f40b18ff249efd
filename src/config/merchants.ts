import { accessSync, constants } from 'node:fs'
import { z } from 'zod'
import type { AmountLimits } from '../domain/commands/command.ts'
import { PAY_PERIODS, type PayPeriod } from '../domain/commands/pay-period.ts'
import { isIdentifier } from '../domain/commands/validate.ts'
import { type Paise, paise } from '../domain/money.ts'
import { parseBaseUrl } from '../gateway/base-url.ts'
import { accountOf, type GatewaySettings } from '../gateway/dialect/account.ts'
import { DialectError, loadDialect } from '../gateway/dialect/dialect-file.ts'
import { withoutLastSlashes } from '../text/text.ts'
import { faultOf } from './fault.ts'
import { address, oneOf, whole, yesOrNo } from './fields.ts'
import { resolveSecret } from './secret.ts'

/** One merchant at one gateway, with everything resolved. */
export type Merchant = GatewaySettings & {
  merchantId: string
  /**
   * Former accounts, where payouts may still be open: payoutd queries them and accepts their callbacks, but sends nothing there.
   */
  formerAccounts: readonly GatewaySettings[]
  limits: AmountLimits
  /** How many applies may be under way at once, over all processes. */
  maxInFlight: number
  ratePerSecond: number | null
  /** The expected cost of a payout until answers show the real one, in paise. */
  feeEstimate: Paise
  /** After this long, a payout without a deadline of its own ends, or goes to a person. */
  deadlineMs: number
  /** The same amount to the same beneficiary in two batches within this period is a duplicate. */
  payPeriod: PayPeriod
  holdDuplicates: boolean
  holdChangedBeneficiaries: boolean
}

/** The fault of one field of a merchant, in words that follow its name; '' is the merchant as a whole. */
export type MerchantFault = { field: string; what: string }

const rupees = z.coerce
  .string()
  .regex(/^\d{1,15}$/, 'must be whole rupees, for example 500')
  .transform((amount) => paise(BigInt(amount) * 100n))

const file = z.string('must be the path of a PEM file').min(1).optional()

const ID = 'must be 1 to 64 of A–Z a–z 0–9 . _ : / -'
const MCH_ID = 'must be the merchant number at the gateway, for example "1000100"'

const SECRET = 'must be env:NAME or file:/path'
const FORMER_KEYS = 'must be a list of env:NAME or file:/path'

const gatewayFields = {
  baseUrl: address(/^https?$/, 'https://gateway.example').transform(withoutLastSlashes),
  // White space or anything else that nobody sees would make another account of the same one.
  mchId: z.string(MCH_ID).regex(/^[!-~]+$/, MCH_ID),
  key: z.string(SECRET),
  formerKeys: z.array(z.string(FORMER_KEYS), FORMER_KEYS).default([]),
  dialect: z.string('must be the name of a dialect or the path of a JSON file').default('default'),
  dialectOverrides: z
    .record(z.string(), z.unknown(), 'must be an object of settings of a dialect')
    .default({}),
  caFile: file,
  certFile: file,
  keyFile: file,
}

const merchantSchema = z.strictObject(
  {
    id: z.string(ID).refine(isIdentifier, ID),
    ...gatewayFields,
    formerAccounts: z
      .array(z.strictObject(gatewayFields, 'must hold objects of settings'), 'must be a list')
      .default([]),
    minAmountRupees: rupees.optional(),
    maxAmountRupees: rupees.optional(),
    maxInFlight: whole(1).default(64),
    ratePerSecond: whole(1).optional(),
    feeEstimatePaise: whole(0).default(0),
    deadlineHours: whole(1).default(72),
    payPeriod: oneOf(PAY_PERIODS).default('month'),
    holdDuplicates: yesOrNo.default(true),
    holdChangedBeneficiaries: yesOrNo.default(true),
  },
  'must be an object of settings',
)

/** One merchant with everything resolved (`env` holds the secrets it refers to), or its faults. */
export function readMerchant(
  input: unknown,
  env: NodeJS.ProcessEnv,
): { merchant: Merchant } | { faults: MerchantFault[] } {
  const parsed = merchantSchema.safeParse(input)
  return parsed.success
    ? resolve(parsed.data, env)
    : { faults: parsed.error.issues.flatMap((issue) => faultsOf(issue, input)) }
}

/** The field's name says which former account it is about. */
function faultsOf(issue: z.core.$ZodIssue, input: unknown): MerchantFault[] {
  const field = issue.path.join('.')
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      field: [...issue.path, key].join('.'),
      what: 'is no setting of a merchant',
    }))
  }
  if (field === '') return [{ field, what: issue.message }]
  const value = issue.path.reduce<unknown>((inner, key) => Object(inner)[key], input)
  const secret = issue.path.some((key) => key === 'key' || key === 'formerKeys')
  return [{ field, what: faultOf(value, issue.message, { secret }) }]
}

function resolve(
  given: z.output<typeof merchantSchema>,
  env: NodeJS.ProcessEnv,
): ReturnType<typeof readMerchant> {
  const faults: MerchantFault[] = []
  const current = resolveGateway(given, env, '', faults)
  const formerAccounts = given.formerAccounts.map((former, i) =>
    resolveGateway(former, env, `formerAccounts.${i}.`, faults),
  )
  if (!current || !formerAccounts.every((former) => former !== undefined)) return { faults }
  const ids = [current, ...formerAccounts].map((each) => accountOf(each).accountId)
  if (new Set(ids).size < ids.length) {
    const what = 'names one account twice: former keys of an account belong in its formerKeys'
    return { faults: [{ field: 'formerAccounts', what }] }
  }
  return {
    merchant: {
      ...current,
      formerAccounts,
      merchantId: given.id,
      limits: { minAmount: given.minAmountRupees ?? null, maxAmount: given.maxAmountRupees ?? null },
      maxInFlight: given.maxInFlight,
      ratePerSecond: given.ratePerSecond ?? null,
      feeEstimate: paise(given.feeEstimatePaise),
      deadlineMs: given.deadlineHours * 3_600_000,
      payPeriod: given.payPeriod,
      holdDuplicates: given.holdDuplicates,
      holdChangedBeneficiaries: given.holdChangedBeneficiaries,
    },
  }
}

type GivenGateway = Pick<z.output<typeof merchantSchema>, keyof typeof gatewayFields>

/** Adds the faults to `faults`, each field with `prefix` before its name; returns nothing if there are any. */
function resolveGateway(
  given: GivenGateway,
  env: NodeJS.ProcessEnv,
  prefix: string,
  faults: MerchantFault[],
): GatewaySettings | undefined {
  const before = faults.length
  const attempt = <T>(field: string, read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      faults.push(...whatIsWrong(error).map((what) => ({ field: prefix + field, what })))
      return undefined
    }
  }
  attempt('baseUrl', () => parseBaseUrl(given.baseUrl))
  const key = attempt('key', () => resolveSecret(given.key, env))
  const formerKeys = given.formerKeys.map((each) => attempt('formerKeys', () => resolveSecret(each, env)))
  const dialect = attempt('dialect', () => loadDialect(given.dialect, given.dialectOverrides))
  const { caFile, certFile, keyFile } = given
  const files = { caFile, certFile, keyFile }
  for (const [field, place] of Object.entries(files))
    if (place !== undefined) attempt(field, () => accessSync(place, constants.R_OK))
  if ((certFile === undefined) !== (keyFile === undefined))
    faults.push({ field: `${prefix}certFile`, what: 'is used together with its key file' })
  if (key === undefined || dialect === undefined || faults.length > before) return undefined
  return {
    baseUrl: given.baseUrl,
    mchId: given.mchId,
    key,
    formerKeys: formerKeys.filter((each) => each !== undefined),
    dialectName: given.dialect,
    dialect,
    tls: files,
  }
}

const whatIsWrong = (error: unknown): string[] =>
  error instanceof DialectError
    ? error.faults.map((fault) => `setting ${fault}`)
    : [`cannot be used: ${error instanceof Error ? error.message : String(error)}`]
