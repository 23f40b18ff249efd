import type { Config } from '../../config/config.ts'
import type { PayPeriod } from '../../domain/commands/pay-period.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { knownMerchant } from '../../queries/sql/merchants.ts'
import { withDatabase } from '../with-database.ts'

/**
 * The merchant whose `what` a command is about: the given one, which the settings or the ledger must have, or the only one.
 * Throws an ExpectedFailure.
 */
export async function merchantOf(
  config: Config,
  given: string | undefined,
  what: 'payout' | 'payin' | 'anomaly',
): Promise<string> {
  const { merchants } = config
  if (given !== undefined) {
    if (merchants.has(given)) return given
    const [ledger] = await withDatabase(config, (db) => db.run(knownMerchant, { merchantId: given }))
    if (ledger?.known) return given
    throw unknownMerchant(given, config)
  }
  const [only, ...others] = merchants.keys()
  if (only === undefined || others.length > 0) {
    throw new ExpectedFailure(
      `which merchant’s ${what}? give --merchant, one of ${[...merchants.keys()].join(', ')}`,
    )
  }
  return only
}

/** How often the merchant pays the same; of a merchant that only the ledger has, the usual. */
export const payPeriodOf = ({ merchants }: Config, merchantId: string): PayPeriod =>
  merchants.get(merchantId)?.payPeriod ?? 'month'

export function unknownMerchant(merchantId: string, { merchants }: Config): ExpectedFailure {
  return new ExpectedFailure(
    `there is no merchant ${merchantId}; the settings have ${[...merchants.keys()].join(', ')}`,
  )
}
