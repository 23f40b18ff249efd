import type { RequestFault } from '../../domain/evidence.ts'
import { forgeryIn, forgeryInAddress } from '../../domain/forgery.ts'
import type { Params } from './request.ts'

/** The JSON in `extra` needs none of the characters that are refused. */
const ADDRESSES = new Set(['notifyUrl', 'returnUrl'])

/** The outgoing values that must not be signed. */
export function forgeriesIn(values: Params): RequestFault[] {
  const faults: RequestFault[] = []
  for (const [field, value] of values) {
    if (typeof value !== 'string') continue
    const forgery = ADDRESSES.has(field) ? forgeryInAddress(value) : forgeryIn(value)
    if (forgery) faults.push({ field, rule: forgery.rule, message: forgery.message })
  }
  return faults
}
