import type { Instant } from '../instant.ts'
import type { Paise } from '../money.ts'

/** What the upstream system asks for, decoded from `payout.commands`, before any rule is checked. */
export type PayoutCommand = {
  payoutId: string
  merchantId: string
  batchId: string | null
  rowNumber: number | null
  /** SHA-256 of the bytes of the file that it came from, in hex; null if it came from no file. */
  fileHash: string | null
  amount: Paise
  currency: string
  /** The sender's own id of the beneficiary; it does not depend on the bank details. */
  beneficiaryId: string | null
  accountName: string | null
  accountNo: string
  bankCode: string
  ifsc: string | null
  vpa: string | null
  phoneNumber: string | null
  payerEmail: string | null
  remark: string | null
  /** Higher goes first; 0 is normal. */
  priority: number
  notBefore: Instant | null
  deadline: Instant | null
  metadata: Record<string, string>
}

/** What precedes the rows of a payroll file: its totals, without its refused rows, and how many those are. */
export type BatchDeclaration = {
  merchantId: string
  batchId: string
  rows: number
  amount: Paise
  refused: number
  fileHash: string
  declaredAt: Instant
}

/** The limits a merchant sets on single payouts; null where it sets none. */
export type AmountLimits = { minAmount: Paise | null; maxAmount: Paise | null }
