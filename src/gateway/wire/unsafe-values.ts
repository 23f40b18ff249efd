import type { RequestFault } from '../../domain/evidence.ts'
import { unsafeTextIn, unsafeTextInAddress } from '../../domain/unsafe-text.ts'
import type { Params } from './request.ts'

/** The JSON in `extra` needs none of the refused characters. */
const ADDRESSES = new Set(['notifyUrl', 'returnUrl'])

/** The outgoing values that the client must not sign. */
export function unsafeValuesIn(values: Params): RequestFault[] {
  const faults: RequestFault[] = []
  for (const [field, value] of values) {
    if (typeof value !== 'string') continue
    const forgery = ADDRESSES.has(field) ? unsafeTextInAddress(value) : unsafeTextIn(value)
    if (forgery) faults.push({ field, rule: forgery.rule, message: forgery.message })
  }
  return faults
}
