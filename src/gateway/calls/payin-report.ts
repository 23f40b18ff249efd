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
 * The report of a signed query answer or callback about its payin. If mchOrderNo is missing or unreadable it is the empty text,
 * which matches no order.
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

/** Gateway contract, "Payin order status". An unlisted value decides nothing. */
/**
 * For payins the contract shows only 2 and 3. Waiting ones use the statuses of payouts, because an unpaid order has some status.
 */
const STATUS = {
  pending: 'pending',
  processing: 'pending',
  success: 'paid',
  failed: 'failed',
  unlisted: 'unlisted',
} as const
