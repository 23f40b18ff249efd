import { createHash, createHmac } from 'node:crypto'
import type { Dialect } from './dialect.ts'

/**
 * Changes with anything that decides which orders a query can find: address, merchant, dialect or key. The key enters as an HMAC
 * under itself, so the hash may be stored and shown.
 */
export function settingsHash(settings: {
  baseUrl: string
  mchId: string
  dialect: Dialect
  key: string
}): string {
  const { baseUrl, mchId, dialect, key } = settings
  const keyHash = createHmac('sha256', key).update('payoutd gateway settings').digest('base64')
  return createHash('sha256')
    .update(JSON.stringify([baseUrl, mchId, dialect, keyHash]))
    .digest('hex')
}
