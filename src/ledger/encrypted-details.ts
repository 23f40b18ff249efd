import type { PayoutCommand } from '../domain/commands/command.ts'
import type { PayoutKey } from '../domain/identifiers.ts'
import { type Paise, paise } from '../domain/money.ts'
import { type SealingKeys, seal, unseal } from '../platform/seal.ts'
import { detailsContext } from './encryption-contexts.ts'

/** What the ledger keeps sealed: the beneficiary, the amount, and the texts sent with the payment. */
export type PayoutDetails = Pick<
  PayoutCommand,
  'accountName' | 'accountNo' | 'ifsc' | 'vpa' | 'phoneNumber' | 'payerEmail' | 'remark' | 'metadata'
> & {
  /** Null in details from before payoutd sealed the amount. */
  amount: Paise | null
}

export function sealDetails(command: PayoutCommand, keys: SealingKeys): Buffer {
  const { amount, accountName, accountNo, ifsc, vpa, phoneNumber, payerEmail, remark, metadata } = command
  const details = {
    amount: String(amount),
    accountName,
    accountNo,
    ifsc,
    vpa,
    phoneNumber,
    payerEmail,
    remark,
    metadata,
  }
  return seal(Buffer.from(JSON.stringify(details)), detailsContext(command), keys)
}

export function openDetails(key: PayoutKey, sealed: Buffer, keys: SealingKeys): PayoutDetails {
  const details = JSON.parse(unseal(sealed, detailsContext(key), keys).toString())
  return { ...details, amount: details.amount === undefined ? null : paise(BigInt(details.amount)) }
}
