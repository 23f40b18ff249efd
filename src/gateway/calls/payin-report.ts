import type { Exchange } from '../../domain/evidence.ts'
import type { PayinReport } from '../../domain/payin/gateway-answers.ts'
import {
  readAmount,
  readIdentifier,
  readInstant,
  readInteger,
  readMessage,
  unreadableIn,
} from '../wire/values.ts'

/**
 * What a signed query answer or callback says about its payin. A report without a readable mchOrderNo has
 * the empty text for it, which is no order's.
 */
export function readPayinReport(fields: ReadonlyMap<string, string | null>, exchange: Exchange): PayinReport {
  return {
    mchOrderNo: readIdentifier(fields.get('mchOrderNo')) ?? '',
    payOrderId: readIdentifier(fields.get('payOrderId')),
    status: readPayinStatus(fields.get('status')),
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
function readPayinStatus(value: string | null | undefined): PayinReport['status'] {
  if (value === '2') return 'paid'
  return value === '3' ? 'failed' : 'pending'
}
