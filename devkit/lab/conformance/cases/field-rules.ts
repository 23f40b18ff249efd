import type { Case } from '../case.ts'
import { takesNone, withEach } from '../refusals.ts'
import { WRONG } from '../wrong-values.ts'

/** Gateway contract, "Limits": the rules for a field that both creations share. */
const OF_BOTH = [
  { field: 'amount', name: 'amount', about: 'amount is a positive integer of hundredths, a multiple of 100' },
  { field: 'phoneNumber', name: 'phone-number', about: 'phoneNumber is 10 digits, the first 6 to 9' },
  {
    field: 'payerEmail',
    name: 'payer-email',
    about: 'payerEmail has an @, a dot, and at least 2 characters before the @',
  },
  { field: 'accountName', name: 'account-name', about: 'accountName is 2 to 48 characters' },
] as const
const OF_PAYOUTS = [
  { field: 'accountBankCode', name: 'bank-code', about: 'accountBankCode is exactly BANK' },
] as const

const rulesOf = (
  call: string,
  operation: 'apply' | 'payinCreate',
  rules: readonly { field: keyof typeof WRONG; name: string; about: string }[],
): Case[] =>
  rules.map(({ field, name, about }) => ({
    name: `${call}/${name}`,
    about,
    ask: (subject) => takesNone(subject, operation, withEach(field, WRONG[field])),
  }))

export const payoutFieldRules = rulesOf('payout-create', 'apply', [...OF_BOTH, ...OF_PAYOUTS])
export const payinFieldRules = rulesOf('payin-create', 'payinCreate', OF_BOTH)
