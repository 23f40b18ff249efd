import { InvalidArgumentError } from 'commander'
import { isUtr } from '../../domain/payout/resolve.ts'

/** The UTR that an option gives. Throws an InvalidArgumentError. */
export function utrOf(text: string): string {
  if (!isUtr(text)) throw new InvalidArgumentError('It must be 1 to 30 letters, digits and hyphens.')
  return text
}

/** Why payoutd does not record what it found under `id` as paid with the UTR of `other`. */
export const utrTakenText = (
  what: 'payout' | 'payin',
  id: string,
  utr: string,
  other: { merchantId: string; id: string },
): string =>
  `${what} ${id} cannot be paid with UTR ${utr}: ${what} ${other.id} of ${other.merchantId} has that UTR, and each transfer has its own`
