import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Dialect } from '../gateway/dialect.ts'
import { loadDialect } from '../gateway/dialect-file.ts'
import type { AmountLimits } from '../payout/command.ts'
import { type Paise, paise } from '../payout/money.ts'
import { isIdentifier } from '../payout/validate.ts'
import { resolveSecret } from './secret.ts'

/** One merchant at one gateway, with everything resolved. */
export type Merchant = {
  merchantId: string
  baseUrl: string
  mchId: string
  key: string
  dialect: Dialect
  limits: AmountLimits
  /** Applies under way at once, over all processes. */
  maxInFlight: number
  ratePerSecond: number | null
  /** What a payout is expected to cost until answers tell, in paise. */
  feeEstimate: Paise
  /** A payout without a deadline of its own ends, or goes to a person, after this long. */
  deadlineMs: number
}

const rupees = z
  .union([z.int(), z.string().regex(/^\d+$/)])
  .transform((amount) => paise(BigInt(amount) * 100n))
const count = z.coerce.number().int().positive()

const merchantSchema = z.strictObject({
  id: z.string().refine(isIdentifier, 'must be 1 to 64 of A–Z a–z 0–9 . _ : / -'),
  baseUrl: z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, '')),
  mchId: z.string().min(1),
  /** `env:NAME` or `file:/path`. */
  key: z.string().min(1),
  dialect: z.string().default('default'),
  dialectOverrides: z.record(z.string(), z.unknown()).default({}),
  minAmountRupees: rupees.optional(),
  maxAmountRupees: rupees.optional(),
  maxInFlight: count.default(64),
  ratePerSecond: count.optional(),
  feeEstimatePaise: z.coerce.number().int().nonnegative().default(0),
  deadlineHours: count.default(72),
})

/**
 * Merchants as they stand in a file (`{"merchants": [...]}`) or in variables. Returns every fault at once:
 * where it stands, and what is wanted.
 */
export function readMerchants(
  inputs: readonly unknown[],
  env: NodeJS.ProcessEnv,
): { merchants: Map<string, Merchant>; faults: string[] } {
  const merchants = new Map<string, Merchant>()
  const faults: string[] = []
  inputs.forEach((input, i) => {
    const parsed = merchantSchema.safeParse(input)
    if (!parsed.success) {
      for (const { path, message } of parsed.error.issues)
        faults.push(`merchant ${i + 1}, ${path.join('.')}: ${message}`)
      return
    }
    const { id } = parsed.data
    if (merchants.has(id)) faults.push(`merchant ${i + 1}, id: ${id} stands twice`)
    try {
      merchants.set(id, resolve(parsed.data, env))
    } catch (error) {
      faults.push(`merchant ${id}: ${error instanceof Error ? error.message : String(error)}`)
    }
  })
  return { merchants, faults }
}

function resolve(given: z.output<typeof merchantSchema>, env: NodeJS.ProcessEnv): Merchant {
  return {
    merchantId: given.id,
    baseUrl: given.baseUrl,
    mchId: given.mchId,
    key: resolveSecret(given.key, env),
    dialect: loadDialect(given.dialect, given.dialectOverrides),
    limits: { minAmount: given.minAmountRupees ?? null, maxAmount: given.maxAmountRupees ?? null },
    maxInFlight: given.maxInFlight,
    ratePerSecond: given.ratePerSecond ?? null,
    feeEstimate: paise(given.feeEstimatePaise),
    deadlineMs: given.deadlineHours * 3_600_000,
  }
}

/** The entries of a merchants file. Throws an Error that names the file. */
export function merchantsFile(path: string): unknown[] {
  try {
    const { merchants } = z
      .object({ merchants: z.array(z.unknown()).min(1) })
      .parse(JSON.parse(readFileSync(path, 'utf8')))
    return merchants
  } catch (error) {
    throw new Error(`MERCHANTS_FILE ${path} must be JSON with a list "merchants"`, { cause: error })
  }
}
