import type { Exchange } from '../../domain/evidence.ts'
import type { PayinReport } from '../../domain/payin/gateway-answers.ts'
import {
  readAmount,
  readIdentifier,
  readInstant,
  readInteger,
  readMessage,
  readStatus,
  readUnlisted,
  unreadableIn,
} from '../wire/values.ts'

/**
 * What a signed query answer or callback says about its payin. A report without a readable mchOrderNo has
 * the empty text for it, which is no order's.
 */
export function readPayinReport(fields: ReadonlyMap<string, string | null>, exchange: Exchange): PayinReport {
  const status = STATUS[readStatus(fields.get('status'))]
  return {
    mchOrderNo: readIdentifier(fields.get('mchOrderNo')) ?? '',
    payOrderId: readIdentifier(fields.get('payOrderId')),
    status,
    ...(status === 'unlisted' ? { unlisted: readUnlisted(fields.get('status')) } : {}),
    amount: readAmount(fields.get('amount')),
    currency: readIdentifier(fields.get('currency')),
    utr: readIdentifier(fields.get('channelPayNo')),
    productId: readIdentifier(fields.get('productId')),
    voucherMap: fields.get('voucherMap') || null,
    paidAt: readInstant(fields.get('paySuccTime')),
    errorMessage: readMessage(fields.get('errorMessage'), []),
    notifyStatus: readInteger(fields.get('notifyStatus')),
    ...unreadableIn(fields, {
      payOrderId: readIdentifier,
      currency: readIdentifier,
      channelPayNo: readIdentifier,
      paySuccTime: readInstant,
    }),
    exchange,
  }
}

/** Gateway contract, "Payin order status". A value that it does not name decides nothing. */
/** For payins the contract shows 2 and 3 alone. What waits is told as of payouts: whoever has not paid has some status. */
const STATUS = {
  pending: 'pending',
  processing: 'pending',
  success: 'paid',
  failed: 'failed',
  unlisted: 'unlisted',
} as const
