/** An amount in paise, a hundredth of a rupee. payoutd computes and stores money in no other form. */
export type Paise = bigint & { readonly __unit: 'paise' }

export const paise = (amount: bigint | number): Paise => BigInt(amount) as Paise
export const ZERO: Paise = paise(0)

export const sum = (amounts: Iterable<Paise>): Paise => {
  let total = 0n
  for (const amount of amounts) total += amount
  return total as Paise
}

/** `12345600n` → `₹1,23,456.00`, with Indian grouping. For people only: nothing parses it again. */
export function formatRupees(amount: Paise): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(3, '0')
  const rupees = digits.slice(0, -2)
  return `${amount < 0n ? '-' : ''}₹${BigInt(rupees).toLocaleString('en-IN')}.${digits.slice(-2)}`
}
