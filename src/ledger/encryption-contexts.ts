import { type PayoutKey, payoutKey } from '../domain/identifiers.ts'
import type { KeptKey } from './callbacks/sql/kept-callbacks.ts'

/** The context bound to each sealed value, so that it does not open in the place of another. */

export const detailsContext = (key: PayoutKey): string => `payout:${payoutKey(key)}`

export const callbackContext = ({
  kind,
  merchantId,
  orderNo,
}: Pick<KeptKey, 'kind' | 'merchantId' | 'orderNo'>): string => `callback:${kind}:${merchantId}:${orderNo}`

/** `origin`: as in the header of that name. */
export const deadLetterContext = (origin: string): string => `dead-letter:${origin}`
