import type { Exchange, OrderReport } from '../../domain/evidence.ts'
import {
  readAmount,
  readIdentifier,
  readMessage,
  readStatus,
  readUnlisted,
  unreadableIn,
} from '../wire/values.ts'

/**
 * The report of a signed query answer or callback about its order. If mchOrderNo is missing or unreadable it is the empty text,
 * which matches no payout.
 */
export function readOrderReport(fields: ReadonlyMap<string, string | null>, exchange: Exchange): OrderReport {
  const status = readStatus(fields.get('status'))
  return {
    mchOrderNo: readIdentifier(fields.get('mchOrderNo')) ?? '',
    agentpayOrderId: readIdentifier(fields.get('agentpayOrderId')),
    status,
    ...(status === 'unlisted' ? { unlisted: readUnlisted(fields.get('status')) } : {}),
    amount: readAmount(fields.get('amount')),
    fee: readAmount(fields.get('fee')),
    utr: readIdentifier(fields.get('channelPayNo')),
    errorMessage: readMessage(fields.get('errorMessage'), []),
    ...unreadableIn(fields, {
      agentpayOrderId: readIdentifier,
      channelPayNo: readIdentifier,
      fee: readAmount,
    }),
    exchange,
  }
}
