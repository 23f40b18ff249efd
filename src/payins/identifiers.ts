import { createHmac, type KeyObject } from 'node:crypto'
import { digest, joined } from '../domain/identifiers.ts'
import { nameUuid } from '../domain/name-uuid.ts'
import type { PayinRequest } from './request.ts'

/**
 * The payinId, which is also the order number sent to the gateway: 30 characters of A–Z and 2–7 (contract: String(30)). The same
 * idempotency key of the same merchant always gives the same one.
 */
export const payinIdFor = (merchantId: string, idempotencyKey: string): string =>
  `C${digest(['payin', merchantId, idempotencyKey], 29)}`

/** Deterministic, so that every repeat of a result, from any relay, carries the same id. */
export const payinEventId = (merchantId: string, payinId: string, version: number): string =>
  nameUuid(joined(['payin', merchantId, payinId, String(version)]))

/** Keyed hash (32 bytes) over the whole request: a repeat of a request under its key has the same one. */
export function payinFingerprint(request: PayinRequest, key: KeyObject): Buffer {
  const { amount, currency, accountName, phoneNumber, payerEmail, remark, returnUrl } = request
  const asked = [String(amount), currency, accountName, phoneNumber, payerEmail, remark, returnUrl]
  return createHmac('sha256', key)
    .update(joined(['payin', ...asked]), 'utf8')
    .digest()
}
